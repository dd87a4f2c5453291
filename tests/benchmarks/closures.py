"""A tape of closures on NumPy arrays, as in small engines, to which overhead is compared.

Every operation creates a function that adds to the gradients of its inputs. backward sorts the
graph by recursion and calls these functions. This engine checks no inputs and frees no memory.
"""

import numpy as np


class Value:
    def __init__(self, data, inputs=()):
        self.data, self.inputs = data, inputs
        self.grad = np.zeros_like(data)
        self.push = lambda: None

    def __add__(self, other):
        out = Value(self.data + other.data, (self, other))

        def push():
            self.grad += out.grad
            other.grad += out.grad

        out.push = push
        return out

    def __mul__(self, other):
        out = Value(self.data * other.data, (self, other))

        def push():
            self.grad += out.grad * other.data
            other.grad += out.grad * self.data

        out.push = push
        return out

    def __matmul__(self, other):
        out = Value(self.data @ other.data, (self, other))

        def push():
            self.grad += out.grad @ other.data.T
            other.grad += self.data.T @ out.grad

        out.push = push
        return out

    def tanh(self):
        out = Value(np.tanh(self.data), (self,))

        def push():
            self.grad += out.grad * (1 - out.data * out.data)

        out.push = push
        return out

    def backward(self, gradient):
        order, seen = [], set()

        def visit(v):
            if v not in seen:
                seen.add(v)
                for w in v.inputs:
                    visit(w)
                order.append(v)

        visit(self)
        self.grad = gradient
        for v in reversed(order):
            v.push()
