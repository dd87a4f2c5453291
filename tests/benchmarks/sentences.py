"""Sentences through MiniLM, against ONNX Runtime and OpenVINO, which compile a model in advance.

    python -m tests.benchmarks.sentences [rounds]

All use float32 and two threads, and a model with the sizes of all-MiniLM-L6-v2 and random weights,
which do not change the time. All run one graph of operations: PyTorch exports it for ONNX Runtime,
whose optimizations are all on, and OpenVINO reads the same file. Peers that are not installed are
left out (`pip install onnxruntime openvino onnx onnxscript`).
"""

import io
import sys

from tests.benchmarks.measure import HEADER, by_processor, foot, interleave, row, use_threads

use_threads(2)

import numpy as np  # noqa: E402
import torch  # noqa: E402

import tinyattn as ta  # noqa: E402
from tinyattn import inference  # noqa: E402
from tinyattn.models import BERT  # noqa: E402

VOCABULARY, D, HEADS, LAYERS = 30522, 384, 12, 6
SIZES = {(1, 12): by_processor(None, 1.05), (32, 24): by_processor(None, 1.0)}  # sentences, tokens


class Sentences(torch.nn.Module):
    """MiniLM with PyTorch's operations. Its weights have the names of our BERT."""

    def __init__(self, model):
        super().__init__()
        self.w = {name: torch.tensor(a) for name, a in model.state_dict().items()}

    def linear(self, x, name):
        return torch.nn.functional.linear(x, self.w[f"{name}.weight"], self.w[f"{name}.bias"])

    def norm(self, x, name):
        weight, bias = self.w[f"{name}.weight"], self.w[f"{name}.bias"]
        return torch.nn.functional.layer_norm(x, (D,), weight, bias, 1e-12)

    def attend(self, x, name):
        B, T = x.shape[:2]
        w, b = self.w[f"{name}.in_proj_weight"], self.w[f"{name}.in_proj_bias"]
        z = torch.nn.functional.linear(x, w, b).reshape(B, T, 3, HEADS, D // HEADS)
        q, k, v = (a.transpose(1, 2) for a in z.unbind(2))  # [B, H, T, d]
        weights = torch.softmax((q * (D // HEADS) ** -0.5) @ k.transpose(-1, -2), -1)
        return self.linear((weights @ v).transpose(1, 2).reshape(B, T, D), f"{name}.out_proj")

    def forward(self, ids):
        x = self.w["embedding.weight"][ids] + self.w["positions.weight"][: ids.shape[1]]
        x = self.norm(x + self.w["types.weight"][0], "norm")
        for i in range(LAYERS):
            p = f"encoder.layers.{i}"
            x = self.norm(x + self.attend(x, f"{p}.self_attn"), f"{p}.norm1")
            y = torch.nn.functional.gelu(self.linear(x, f"{p}.linear1"))
            x = self.norm(x + self.linear(y, f"{p}.linear2"), f"{p}.norm2")
        return x


def exported(model, ids):
    """Return the model in the ONNX format as bytes, or None if PyTorch cannot export it."""
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError:
        return None
    file = io.BytesIO()
    with torch.no_grad():
        torch.onnx.export(model, (ids,), file, input_names=["ids"], dynamo=False)
    return file.getvalue()


def with_onnx_runtime(onnx):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
    return lambda ids: session.run(None, {"ids": ids})[0]


def with_openvino(onnx):
    import openvino

    settings = {"INFERENCE_NUM_THREADS": 2, "INFERENCE_PRECISION_HINT": "f32"}
    model = openvino.Core().read_model(onnx)
    compiled = openvino.compile_model(model, "CPU", {**settings, "PERFORMANCE_HINT": "LATENCY"})
    return lambda ids: compiled(ids)[0]


def programs(B, T):
    """Return {name: function}, after comparing their results."""
    model = BERT(VOCABULARY, D, HEADS, LAYERS, rng=0).eval()
    ids = np.random.default_rng(0).integers(VOCABULARY, size=(B, T))
    theirs, torch_ids = Sentences(model), torch.tensor(ids)
    compiled, onnx = inference.compile(model), exported(theirs, torch_ids)

    @torch.inference_mode()
    def eager():
        return theirs(torch_ids).numpy()

    found = {"tinyattn": lambda: compiled(ids).data, "PyTorch": eager}
    for name, make in {"ONNX Runtime": with_onnx_runtime, "OpenVINO": with_openvino}.items():
        try:
            run = make(onnx) if onnx else None
        except ImportError:
            run = None
        if run:
            found[name] = lambda run=run: run(ids)
    for name, run in found.items():
        np.testing.assert_allclose(run(), found["PyTorch"](), rtol=0, atol=1e-4, err_msg=name)
    return found


def main(rounds=31):
    print(HEADER)
    for (B, T), goal in SIZES.items():
        every = programs(B, T)
        times = interleave(every, rounds, at_least=0.1)
        for peer in list(every)[1:]:
            work = f"{B} sentence{'s' * (B > 1)} of {T} tokens"
            print(row(work, times, goal=goal if peer != "PyTorch" else None, peer=peer), flush=True)
    print(foot(rounds, np, torch, ta, *[m for n, m in sys.modules.items() if n in PEERS]))


PEERS = ("onnxruntime", "openvino")

if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
