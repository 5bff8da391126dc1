"""Paddle's updates written again, in double precision and one parameter at a time, to compare with."""

import math

import numpy as np

from keraunos.compat.paddle.model_config import OptimizationConfig, ParameterConfig

METHODS = (
    "momentum",
    "torch_momentum",
    "sparse_momentum",
    "adagrad",
    "adadelta",
    "rmsprop",
    "decayed_adagrad",
    "adam",
    "adamax",
)


def settings(method="momentum", **more):
    return OptimizationConfig(batch_size=8, algorithm="sgd", learning_method=method, learning_rate=0.1, **more)


def parameter(name, size=1, **more):
    return ParameterConfig(name=name, size=size, **more)


def rate(opt, samples, passes=0):
    a, b, eta = opt.learning_rate_decay_a, opt.learning_rate_decay_b, opt.learning_rate
    if opt.learning_method in ("adagrad", "adam", "adamax"):
        return eta
    match opt.learning_rate_schedule:
        case "constant":
            return eta
        case "poly":
            return eta * math.pow(1 + a * samples, -b)
        case "caffe_poly":
            return 0.0 if samples > a else eta * math.pow(1 - samples / a, b)
        case "exp":
            return eta * math.pow(a, samples / b)
        case "discexp":
            return eta * math.pow(a, math.floor(samples / b))
        case "linear":
            return max(eta - a * samples, b)
    place = samples if opt.learning_rate_schedule == "manual" else passes
    for text in opt.learning_rate_args.split(","):
        end, factor = map(float, text.split(":"))
        if place <= end:
            break
    return eta * factor


class Reference:
    """One parameter under one method; `step` takes the summed gradient and says where the parameter is then."""

    def __init__(self, opt, own, value):
        self.opt, self.own = opt, own
        self.w = np.array(value, np.float64)
        self.v = np.zeros_like(self.w)
        self.one = np.zeros_like(self.w)
        self.two = np.zeros_like(self.w)
        self.batches = self.samples = self.batch_of_pass = self.last_pass = 0
        self.alpha, self.beta, self.tau = 1.0, 1.0, -1.0
        self.ut, self.vt = np.zeros_like(self.w), self.w.copy()

    def step(self, gradient, rows, passes=0, *, ends=False):
        own = self.own
        self.batch_of_pass = self.batch_of_pass + 1 if passes == self.last_pass else 1
        self.last_pass = passes
        self.samples += rows
        self.batches += 1
        g = np.array(gradient, np.float64)
        if own.gradient_clipping_threshold:
            g = np.where(np.abs(g) > own.gradient_clipping_threshold, np.sign(g) * own.gradient_clipping_threshold, g)
        eta = rate(self.opt, self.samples, passes) * own.learning_rate
        self.sparse = own.sparse_update or own.sparse_remote_update
        behind = own.decay_rate_l1 > 0 or own.num_batches_regularization > 1 or self.sparse
        local = self._update(g, eta, 0.0 if behind else own.decay_rate)
        rest = self.batch_of_pass % own.num_batches_regularization
        if behind and (ends or not rest):
            times = eta * (rest or own.num_batches_regularization) * local
            self.w = np.sign(self.w) * np.maximum(np.abs(self.w) - times * own.decay_rate_l1, 0)
            self.w = self.w / (1 + times * own.decay_rate)
        return self.w

    def _update(self, g, eta, decay):
        opt, rho, eps, first = self.opt, self.opt.ada_rou, self.opt.ada_epsilon, self.batches == 1
        method = opt.learning_method
        if method in ("adam", "adamax"):
            return self._adam(g, eta)
        if method == "sparse_momentum" and self.sparse and self.own.momentum:
            return self._sparse(g, eta)
        local = np.ones_like(g)
        if method == "torch_momentum" and not first:
            eta = eta * (1 - self.own.momentum)
        elif method == "adagrad":
            self.one += g**2
            local = 1 / np.sqrt(self.one + eps)
        elif method == "adadelta":
            self.one = rho * self.one + (1 - rho) * g**2
            local = np.sqrt((self.two + eps) / (self.one + eps))
            self.two = rho * self.two + (1 - rho) * (g * local) ** 2
        elif method in ("rmsprop", "decayed_adagrad"):
            fresh = self.one == 0 if self.sparse else first
            self.one = np.where(fresh, g**2, rho * self.one + (1 - rho) * g**2)
            self.two = rho * self.two + (1 - rho) * g
            local = 1 / np.sqrt(self.one - (self.two**2 if method == "rmsprop" else 0) + eps)
        self.v = self.own.momentum * self.v - eta * local * (g + decay * self.w)
        self.w = self.w + self.v
        return local

    def _sparse(self, g, eta):
        self.tau += self.beta / self.alpha
        self.alpha /= self.own.momentum
        self.ut -= self.alpha * eta * g
        self.vt += self.tau * self.alpha * eta * g
        self.w = (self.tau / self.beta + 1 / self.alpha) * self.ut + self.vt / self.beta
        return np.ones_like(g)

    def _adam(self, g, eta):
        opt, t = self.opt, self.batches
        self.one = opt.adam_beta1 * self.one + (1 - opt.adam_beta1) * g
        if opt.learning_method == "adam":
            self.two = opt.adam_beta2 * self.two + (1 - opt.adam_beta2) * g**2
            corrected = eta * math.sqrt(1 - opt.adam_beta2**t) / (1 - opt.adam_beta1**t)
            self.w = self.w - corrected * self.one / (np.sqrt(self.two) + opt.adam_epsilon)
        else:
            self.two = np.maximum(opt.adam_beta2 * self.two, np.abs(g))
            moving = self.one != 0
            self.w[moving] -= eta / (1 - opt.adam_beta1**t) * self.one[moving] / self.two[moving]
        return np.ones_like(g)
