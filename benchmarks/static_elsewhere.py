"""Static files of scikit-learn and Keras made dynamic, judged against what the original gives at several batches.

The files need packages that anyshape does not, so they are made in an environment of their own:
    python benchmarks/static_elsewhere.py make DIR      where scikit-learn, skl2onnx, tensorflow and tf2onnx are
    python benchmarks/static_elsewhere.py judge DIR     where anyshape is
"""

from __future__ import annotations

import argparse
import importlib.util
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

BATCHES = (1, 2)
SIZES = (1, 2, 3, 5, 8)
Predict = Callable[[np.ndarray], np.ndarray]


def save(folder: Path, name: str, example: np.ndarray, predict: Predict) -> None:
    """Inputs and what the original gives for them, at every batch."""
    rows = np.random.default_rng(0).standard_normal((max(SIZES), *example.shape[1:])).astype(example.dtype)
    given = {f"x{size}": rows[:size] for size in SIZES}
    np.savez(folder / f"{name}.npz", **given, **{f"y{size}": predict(rows[:size]) for size in SIZES})


# ---- scikit-learn


def fitted() -> Iterator[tuple[str, Any]]:
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x = np.random.default_rng(1).standard_normal((80, 4)).astype(np.float32)
    classes = (x[:, 0] + x[:, 1] > 0).astype(int)
    yield "sk_logistic", make_pipeline(StandardScaler(), LogisticRegression()).fit(x, classes)
    yield "sk_forest", RandomForestClassifier(5, random_state=0).fit(x, classes)
    yield "sk_boosting", GradientBoostingRegressor(n_estimators=5, random_state=0).fit(x, x[:, 0] * x[:, 1])
    yield "sk_mlp", MLPRegressor(hidden_layer_sizes=(8,), max_iter=50, random_state=0).fit(x, x[:, 0] * x[:, 1])


def make_sklearn(folder: Path) -> None:
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType

    for name, model in fitted():
        classifies = hasattr(model, "predict_proba")
        options = {"zipmap": False} if classifies else None
        for batch in BATCHES:
            made = to_onnx(model, initial_types=[("x", FloatTensorType([batch, 4]))], options=options, target_opset=17)
            (folder / f"{name}_b{batch}.onnx").write_bytes(made.SerializeToString())
            predict = model.predict_proba if classifies else lambda x, m=model: m.predict(x)[:, None]
            save(folder, f"{name}_b{batch}", np.zeros((batch, 4), np.float32), predict)


# ---- Keras


def networks() -> Iterator[tuple[str, Any, tuple[int, ...]]]:
    import tensorflow as tf

    layers = tf.keras.layers
    picture = (16, 16, 3)
    x = tf.keras.Input(picture)
    pooled = layers.MaxPool2D()(layers.Conv2D(8, 3, padding="same", activation="relu")(x))
    yield "keras_cnn", tf.keras.Model(x, layers.Dense(5)(layers.Flatten()(pooled))), picture
    x = tf.keras.Input((16, 6))
    yield "keras_lstm", tf.keras.Model(x, layers.LSTM(8, return_sequences=True)(x)), (16, 6)
    x = tf.keras.Input((16, 8))
    yield "keras_attention", tf.keras.Model(x, layers.MultiHeadAttention(2, 4)(x, x)), (16, 8)
    x = tf.keras.Input(picture)
    mean = layers.GlobalAveragePooling2D()(layers.DepthwiseConv2D(3, padding="same")(x))
    yield "keras_mobile", tf.keras.Model(x, layers.Dense(4)(mean)), picture
    x = tf.keras.Input(picture)
    skip = layers.Conv2D(4, 3, padding="same")(x)
    grown = layers.UpSampling2D()(layers.Conv2D(8, 3, 2, padding="same")(skip))
    yield "keras_unet", tf.keras.Model(x, layers.Conv2D(2, 1)(layers.Concatenate()([skip, grown]))), picture


def make_keras(folder: Path) -> None:
    import tensorflow as tf
    import tf2onnx

    for name, model, shape in networks():
        for batch in BATCHES:
            signature = [tf.TensorSpec((batch, *shape), tf.float32, name="x")]
            function = tf.function(lambda x, m=model: m(x, training=False), input_signature=signature)
            path = folder / f"{name}_b{batch}.onnx"
            tf2onnx.convert.from_function(function, input_signature=signature, opset=15, output_path=str(path))
            example = np.zeros((batch, *shape), np.float32)
            save(folder, path.stem, example, lambda x, m=model: np.asarray(m(x, training=False)))


def make(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for packages, maker in ((("sklearn", "skl2onnx"), make_sklearn), (("tensorflow", "tf2onnx"), make_keras)):
        missing = [package for package in packages if importlib.util.find_spec(package) is None]
        if missing:
            print(f"{' and '.join(missing)} not installed: its files are left out")
        else:
            maker(folder)


# ---- judging


def outcome(path: Path, out: Path) -> str:
    import onnxruntime

    import anyshape

    try:
        anyshape.make_dynamic(path, out=out)
    except anyshape.ExportError as error:
        return f"refused: {error.findings[0].headline[:150]}"
    session = onnxruntime.InferenceSession(str(out), providers=["CPUExecutionProvider"])
    known = np.load(path.with_suffix(".npz"))
    for size in SIZES:
        try:
            given = session.run(None, {session.get_inputs()[0].name: known[f"x{size}"]})[-1]
        except Exception as error:
            return f"error: at {size}: {str(error).splitlines()[0][:120]}"
        expected = known[f"y{size}"]
        if given.shape != expected.shape or not np.allclose(given, expected, rtol=1e-3, atol=1e-4):
            return f"WRONG: at {size}: shape {given.shape} for {expected.shape}"
    return "right"


def judge(folder: Path) -> None:
    counts: Counter[str] = Counter()
    for path in sorted(folder.glob("*_b?.onnx")):
        found = outcome(path, folder / "made.onnx")
        counts[found.partition(":")[0]] += 1
        print(f"{path.stem:24} {found}", flush=True)
    print(", ".join(f"{count} {name}" for name, count in counts.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("make", "judge"))
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    (make if options.what == "make" else judge)(options.folder)


if __name__ == "__main__":
    main()
