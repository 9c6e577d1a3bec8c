// Runs a model in onnxruntime-node or onnxruntime-web (wasm): a task as JSON on stdin, its outputs as JSON on stdout.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { resolve, join } from "node:path";

const folder = resolve(process.argv[2]);
const task = JSON.parse(readFileSync(0, "utf8"));
const runtime = createRequire(join(folder, "any.js"))(task.package);
const arrays = { float32: Float32Array, int64: BigInt64Array, int32: Int32Array, bool: Uint8Array };

function tensorOf({ type, shape, data }) {
  const bytes = Buffer.from(data, "base64");
  const copy = new Uint8Array(bytes).buffer; // aligned for any type
  return new runtime.Tensor(type, new arrays[type](copy), shape);
}

try {
  if (task.package === "onnxruntime-web") runtime.env.wasm.numThreads = 1;
  const provider = task.package === "onnxruntime-web" ? "wasm" : "cpu";
  const session = await runtime.InferenceSession.create(readFileSync(task.model), { executionProviders: [provider] });
  const inputs = Object.fromEntries(Object.entries(task.inputs).map(([name, value]) => [name, tensorOf(value)]));
  const found = await session.run(inputs);
  const outputs = Object.entries(found).map(([name, value]) => {
    const { buffer, byteOffset, byteLength } = value.data;
    return [name, { type: value.type, shape: value.dims, data: Buffer.from(buffer, byteOffset, byteLength).toString("base64") }];
  });
  process.stdout.write(JSON.stringify(Object.fromEntries(outputs)), () => process.exit(0));
} catch (error) {
  process.stderr.write(String(error.message ?? error), () => process.exit(1));
}
