"""Lifting: static exports of a module at several sizes become one file for every size; the last of the strategies.

Code that computes with sizes outside of PyTorch (numpy, lists, texts, caches) is invisible to a trace: it leaves
numbers behind. Exported at several sizes, such a module gives the same graph with other numbers. Each number that moved
is explained by an expression of the dims and computed in the file; one that is not explained ends the attempt.

    observe (small sizes) -> align (node by node) -> explain and replace (constants) -> the checker decides
"""
