"""Gates and scan in array form: the math namespace ``m`` first, all rows at once."""

from typing import Any


def scan_gates(m: Any, delta: Any, A_log: Any) -> tuple[Any, Any]:
    """step = softplus(delta) and a = exp(-step exp(A_log))."""
    step = m.softplus(delta)
    return step, m.exp(-step * m.exp(A_log))


def scan_gates_backward(m: Any, g_step: Any, g_a: Any, delta: Any, A_log: Any) -> tuple[Any, Any]:
    """ddelta = (g_step - g_a a exp(A_log)) sigmoid(delta), dA_log = -sum g_a a step exp(A_log)."""
    step, a = scan_gates(m, delta, A_log)
    to_exponent = g_a * a * m.exp(A_log)
    ddelta = (g_step - to_exponent) * m.sigmoid(delta)
    return ddelta, -m.sum(to_exponent * step, axis=(0, 1))


def scan_chunked(
    m: Any, a: Any, step: Any, B: Any, C: Any, D: Any, u: Any, x_0: Any, reset: Any
) -> tuple[Any, Any]:
    """y_t = C_t x_t + D u_t and x_T of x_t = a_t x_(t-1) + step_t B_t u_t."""
    if u.shape[1] == 0:
        return m.zeros(u.shape), x_0
    states = _states(m, a, step, B, u, x_0, reset)
    return _outputs(m, states, C, D, u), states[:, -1]


def _kept(m: Any, a: Any, reset: Any) -> Any:
    """What the state before is multiplied by: a, and 0 where it is replaced by 0."""
    return a if reset is None else m.where(reset[..., None], 0.0, a)


def _gained(step: Any, B: Any, u: Any) -> Any:
    """step_t[d] B_t[n] u_t[d], with a last axis for the states."""
    return (step * u)[..., None] * B[..., None, :]


def _states(m: Any, a: Any, step: Any, B: Any, u: Any, x_0: Any, reset: Any) -> Any:
    """Every state of a window, (R, T, H, S)."""
    return m.linear_scan(_kept(m, a, reset)[..., None], _gained(step, B, u), x_0, axis=1)


def _outputs(m: Any, states: Any, C: Any, D: Any, u: Any) -> Any:
    """C x + D u as one sum: where the direct term is added is the kernel's own choice."""
    direct = (D * u)[..., None]
    return m.sum(m.concatenate([states * C[..., None, :], direct], axis=-1), axis=-1)


def scan_chunked_backward(
    m: Any,
    g_y: Any,
    g_x_T: Any,
    a: Any,
    step: Any,
    B: Any,
    C: Any,
    D: Any,
    u: Any,
    x_0: Any,
    reset: Any,
) -> tuple[Any, ...]:
    """da, dstep, dB, dC, dD, du and dx_0, through G_t = C_t g_t + a_(t+1) G_(t+1)."""
    if u.shape[1] == 0:
        nothing = tuple(m.zeros(each.shape) for each in (a, step, B, C, D, u))
        return (*nothing, g_x_T)
    states = _states(m, a, step, B, u, x_0, reset)
    before = m.concatenate([x_0[:, None], states[:, :-1]], axis=1)
    kept = _kept(m, a, reset)
    pull = _pulls(m, g_y, g_x_T, kept, C)
    da = _kept(m, m.sum(pull * before, axis=-1), reset)
    return (da, *_entries(m, pull, g_y, step, B, D, u, states), kept[:, 0, :, None] * pull[:, 0])


def _pulls(m: Any, g_y: Any, g_x_T: Any, kept: Any, C: Any) -> Any:
    """The gradient to every state, (R, T, H, S): the scan of C_t g_t from the end."""
    later = m.concatenate([kept[:, 1:], m.ones((kept.shape[0], 1, kept.shape[2]))], axis=1)
    own = g_y[..., None] * C[..., None, :]
    return m.linear_scan(later[:, ::-1, :, None], own[:, ::-1], g_x_T, axis=1)[:, ::-1]


def _entries(
    m: Any, pull: Any, g_y: Any, step: Any, B: Any, D: Any, u: Any, states: Any
) -> tuple[Any, ...]:
    """dstep, dB, dC, dD and du, given the gradient to every state; leading axes may differ."""
    to_gain = m.sum(pull * B[..., None, :], axis=-1)
    dB = m.sum(pull * (step * u)[..., None], axis=-2)
    dC = m.sum(states * g_y[..., None], axis=-2)
    dD = m.sum(g_y * u, axis=tuple(range(len(u.shape) - 1)))
    return to_gain * u, dB, dC, dD, to_gain * step + D * g_y


def scan_step(
    m: Any, a: Any, step: Any, B: Any, C: Any, D: Any, u: Any, x: Any, reset: Any
) -> tuple[Any, Any]:
    """y = C x' + D u and x' = a x + step B u of one event."""
    after = _kept(m, a, reset)[..., None] * x + _gained(step, B, u)
    return _outputs(m, after, C, D, u), after


def scan_step_backward(
    m: Any,
    g_y: Any,
    g_x: Any,
    a: Any,
    step: Any,
    B: Any,
    C: Any,
    D: Any,
    u: Any,
    x: Any,
    reset: Any,
) -> tuple[Any, ...]:
    """da, dstep, dB, dC, dD, du and dx of one event."""
    kept = _kept(m, a, reset)[..., None]
    after = kept * x + _gained(step, B, u)
    pull = g_y[..., None] * C[..., None, :] + g_x
    da = _kept(m, m.sum(pull * x, axis=-1), reset)
    return (da, *_entries(m, pull, g_y, step, B, D, u, after), kept * pull)
