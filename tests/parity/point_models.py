"""The models on point clouds once more in PyTorch, with the same names of parameters."""

from itertools import pairwise

import torch
from scipy.spatial import cKDTree
from torch import nn
from torch_geometric.nn.aggr import MultiAggregation


def search(x, k):
    """Sender and receiver of the k nearest neighbours of each point, itself among them."""
    x = x.detach().numpy()
    src = torch.from_numpy(cKDTree(x).query(x, k=k, workers=2)[1].reshape(-1))
    return src, torch.arange(len(x)).repeat_interleave(k)


class GravNet(nn.Module):
    """GravNetConv as PyTorch Geometric computes it; its own class wants torch_cluster to search."""

    def __init__(self, d_in, d_out, S, P, k):
        super().__init__()
        self.k = k
        self.lin_s, self.lin_h = nn.Linear(d_in, S), nn.Linear(d_in, P)
        self.lin_out1, self.lin_out2 = nn.Linear(d_in, d_out, bias=False), nn.Linear(2 * P, d_out)
        self.aggr = MultiAggregation(["mean", "max"])

    def forward(self, x):
        s, h = self.lin_s(x), self.lin_h(x)
        src, dst = search(s, self.k)
        weight = torch.exp(-10.0 * (s[src] - s[dst]).pow(2).sum(-1))
        found = self.aggr(h[src] * weight[:, None], dst, dim_size=len(x))
        return self.lin_out1(x) + self.lin_out2(found)


class GravNetBlock(nn.Module):
    def __init__(self, d_in, width, d_out, S, P, k):
        super().__init__()
        sizes = [2 * d_in, width, width, width]
        layers = [m for a, b in pairwise(sizes) for m in (nn.Linear(a, b), nn.Tanh())]
        self.dense, self.gravnet = nn.Sequential(*layers), GravNet(width, d_out, S, P, k)
        self.norm = nn.BatchNorm1d(d_out)

    def forward(self, x):
        x = torch.cat([x, x.mean(0).expand_as(x)], -1)
        return self.norm(torch.tanh(self.gravnet(self.dense(x))))


class GravNetModel(nn.Module):
    """One event."""

    def __init__(self, d_in, d_out, blocks, width, features, S, P, k, hidden):
        super().__init__()
        sizes = [d_in] + [features] * (blocks - 1)
        self.norm = nn.BatchNorm1d(d_in)
        self.blocks = nn.ModuleList([GravNetBlock(a, width, features, S, P, k) for a in sizes])
        self.head = nn.Sequential(
            nn.Linear(blocks * features, hidden), nn.ReLU(), nn.Linear(hidden, d_out)
        )

    def forward(self, x):
        x, outputs = self.norm(x), []
        for block in self.blocks:
            x = block(x)
            outputs.append(x)
        return self.head(torch.cat(outputs, -1))


class EdgeConvBlock(nn.Module):
    def __init__(self, d_in, widths, k):
        super().__init__()
        self.k, layers, sizes = k, [], [2 * d_in, *widths]
        for a, b in pairwise(sizes):
            layers += [nn.Linear(a, b, bias=False), nn.BatchNorm1d(b), nn.ReLU()]
        self.nn = nn.Sequential(*layers)
        self.shortcut = nn.Sequential(
            nn.Linear(d_in, widths[-1], bias=False), nn.BatchNorm1d(widths[-1])
        )

    def forward(self, x, places):
        """x [B, P, F], without padding."""
        B, P, F = x.shape
        index = torch.cdist(places, places).topk(self.k + 1, largest=False)[1][:, :, 1:]
        flat = (index + P * torch.arange(B)[:, None, None]).reshape(B * P, self.k)
        x = x.reshape(B * P, F)
        mine = x[:, None].expand(-1, self.k, -1)
        messages = self.nn(torch.cat([mine, x[flat] - mine], -1).reshape(-1, 2 * F))
        y = messages.reshape(B * P, self.k, -1).mean(1) + self.shortcut(x)
        return torch.relu(y).reshape(B, P, -1)


class ParticleNet(nn.Module):
    """Jets of the same number of particles, more than k: no padding."""

    def __init__(self, features, classes, k, widths, hidden):
        super().__init__()
        self.norm = nn.BatchNorm1d(features)
        sizes = [features, *(w[-1] for w in widths)]
        self.blocks = nn.ModuleList(
            [EdgeConvBlock(a, w, k) for a, w in zip(sizes, widths, strict=False)]
        )
        self.head = nn.Sequential(
            nn.Linear(sizes[-1], hidden), nn.ReLU(), nn.Dropout(0.0), nn.Linear(hidden, classes)
        )

    def forward(self, points, features):
        x = self.norm(features.reshape(-1, features.shape[-1])).reshape(features.shape)
        for i, block in enumerate(self.blocks):
            x = block(x, points if i == 0 else x.detach())
        return self.head(x.mean(1))
