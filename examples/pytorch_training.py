# SPDX-License-Identifier: Apache-2.0
"""A small language model trained for a moment: `gpufl trace -- python3 examples/pytorch_training.py`.

The phases are marked with NVTX ranges, which gpufl shows as scopes. No gpufl code is needed.
"""
import contextlib
import sys

import torch
import torch.nn.functional as F

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 60
BATCH, LENGTH, WIDTH, HEADS, LAYERS, VOCABULARY = 16, 256, 512, 8, 6, 8192


@contextlib.contextmanager
def phase(name):
    torch.cuda.nvtx.range_push(name)
    try:
        yield
    finally:
        torch.cuda.nvtx.range_pop()


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        with phase("attention"):
            q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
            split = lambda t: t.view(BATCH, LENGTH, HEADS, -1).transpose(1, 2)
            mixed = F.scaled_dot_product_attention(split(q), split(k), split(v), is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
        with phase("mlp"):
            return x + self.down(F.gelu(self.up(self.norm2(x))))


def main():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(VOCABULARY, WIDTH), *[Block() for _ in range(LAYERS)],
                                torch.nn.Linear(WIDTH, VOCABULARY)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=False)
    data = torch.randint(VOCABULARY, (64, BATCH, LENGTH + 1)).pin_memory()
    for index in range(STEPS):
        with phase("step"):
            with phase("load"):
                tokens = data[index % 64].cuda(non_blocking=True)
            with phase("forward"), torch.autocast("cuda", torch.bfloat16):
                logits = model(tokens[:, :-1])
                loss = F.cross_entropy(logits.float().view(-1, VOCABULARY), tokens[:, 1:].reshape(-1))
            with phase("backward"):
                optimizer.zero_grad()
                loss.backward()
            with phase("optimizer"):
                optimizer.step()
            if index % 10 == 9:
                with phase("log"):
                    print(f"step {index + 1}: loss {loss.item():.3f}", flush=True)
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
