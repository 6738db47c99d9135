#!/usr/bin/python3
"""Writes the golden values of the optimizers: three steps of each on three small parameters, in float64.

Steps are those of optax (https://pypi.org/project/optax), which states every optimizer independently; of Muon optax
makes the direction orthogonal, and the rest is said here as in PyTorch's documentation of torch.optim.Muon, for optax
corrects its momentum for bias. README.md says how to run it.
"""

import json
import math

import jax
import jax.numpy as jnp
import optax
from optax.contrib import _muon

jax.config.update("jax_enable_x64", True)

STEPS = 3
COUNT = 2.0  # tokens of a step, by which sums of gradients are divided
CLIP = 1.0   # below the norm
SHAPES = {"w": (3, 4), "u": (3, 2, 2), "b": (3,)}
ROW_DIMS = {"w": 1, "u": 2}  # of the matrices
DECAYS = {"w": 1, "u": 1, "b": 0}
LR, DECAY = 0.03, 0.2
LR_SCALE, DECAY_SCALE = {"u": 0.5}, {"u": 2.0}
HYPER = {"beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "sgd_momentum": 0.8, "lion_beta1": 0.9, "lion_beta2": 0.98,
         "muon_momentum": 0.95}


def wave(shape, k):
    size = math.prod(shape)
    return jnp.array([math.cos(0.9 * i + 1.7 * k) for i in range(size)]).reshape(shape)


def start():
    return {name: wave(shape, k) for k, (name, shape) in enumerate(SHAPES.items())}


def gradient_sums(step):
    return {name: wave(shape, 10 + 3 * step + k) for k, (name, shape) in enumerate(SHAPES.items())}


def clipped(step):
    """The mean gradients of a step, clipped by their norm."""
    means = {name: g / COUNT for name, g in gradient_sums(step).items()}
    norm = math.sqrt(sum(float((g * g).sum()) for g in means.values()))
    assert norm > CLIP
    return {name: g * (CLIP / (norm + 1e-6)) for name, g in means.items()}


def rate(name):
    return LR * LR_SCALE.get(name, 1)


def decay(name):
    return DECAY * DECAY_SCALE.get(name, 1) * DECAYS[name]


def optimizer(kind, name):
    h, lr, wd = HYPER, rate(name), decay(name)
    if kind == "adamw":
        return optax.adamw(lr, h["beta1"], h["beta2"], h["eps"], weight_decay=wd)
    if kind == "adam":
        return optax.chain(optax.add_decayed_weights(wd), optax.adam(lr, h["beta1"], h["beta2"], h["eps"]))
    if kind == "sgd":
        return optax.chain(optax.add_decayed_weights(wd), optax.sgd(lr, momentum=h["sgd_momentum"]))
    return optax.lion(lr, h["lion_beta1"], h["lion_beta2"], weight_decay=wd)


def states_of(state, kind):
    """m and v of an optax state."""
    for part in jax.tree_util.tree_leaves(state, is_leaf=lambda s: hasattr(s, "mu") or hasattr(s, "trace")):
        if hasattr(part, "nu"):
            return {"m": part.mu, "v": part.nu}
        if hasattr(part, "mu"):
            return {"m": part.mu}
        if hasattr(part, "trace"):
            return {"m": part.trace}
    raise ValueError(kind)


def by_optax(kind, name):
    param = start()[name]
    rule = optimizer(kind, name)
    state = rule.init(param)
    for step in range(STEPS):
        update, state = rule.update(clipped(step)[name], state, param)
        param = optax.apply_updates(param, update)
    return param, states_of(state, kind)


def muon(name):
    param = start()[name]
    rows = math.prod(param.shape[:ROW_DIMS[name]])
    m, mu = jnp.zeros_like(param), HYPER["muon_momentum"]
    for step in range(STEPS):
        g = clipped(step)[name]
        m = mu * m + (1 - mu) * g
        matrix = (mu * m + (1 - mu) * g).reshape(rows, -1)
        matrix = _muon.orthogonalize_via_newton_schulz(matrix, jnp.array([3.4445, -4.7750, 2.0315]), 5, eps=1e-7)
        direction = 0.2 * math.sqrt(max(matrix.shape)) * matrix.reshape(param.shape)
        param = param - rate(name) * (direction + decay(name) * param)
    return param, {"m": m}


def numbers(array):
    return [float(x) for x in array.reshape(-1)]


def main():
    out = {"steps": STEPS, "count": COUNT, "clip": CLIP, "lr": LR, "decay": DECAY, "hyper": HYPER,
           "start": {name: numbers(p) for name, p in start().items()},
           "gradients": [{name: numbers(g) for name, g in gradient_sums(step).items()} for step in range(STEPS)],
           "optimizers": {}}
    for kind in ("adamw", "adam", "sgd", "lion", "muon"):
        made = {}
        for name in SHAPES:
            param, states = muon(name) if kind == "muon" and name in ROW_DIMS else by_optax(
                "adamw" if kind == "muon" else kind, name)
            made[name] = numbers(param)
            for state, values in states.items():
                made[f"{name}/{state}"] = numbers(values)
        out["optimizers"][kind] = made
    with open("optimizers.json", "w") as file:
        json.dump(out, file, indent=None, separators=(",", ": "))
        file.write("\n")


main()
