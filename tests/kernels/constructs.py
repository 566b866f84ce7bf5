"""One kernel per construct of the language."""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def nested_loops(x, out, inner, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for i in range(0, program + 1):
        for j in range(i, tl.load(inner + program)):
            if (i + j) % 2 == 0:
                total += tl.load(x + tl.arange(0, BLOCK)) * (j + 1)
            else:
                total -= 1.0
    tl.store(out + program * BLOCK + tl.arange(0, BLOCK), total)


@triton.jit
def collatz(out, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    value = program + 1
    steps = 0
    while value != 1:
        if value % 2 == 0:  # noqa: SIM108
            value = value // 2
        else:
            value = 3 * value + 1
        steps += 1
    tl.store(out + program, steps)


@triton.jit
def return_from_loop_body(x, out, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    limit = tl.load(x + program)
    if limit < 0:
        tl.store(out + program, -1)
        return
    found = 0
    for i in range(0, n):
        if i * i <= limit:
            found = i
    tl.store(out + program, found)


@triton.jit
def choose_pointer(a, b, out, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    if program % 2 == 0:  # noqa: SIM108
        source = a
    else:
        source = b
    first = tl.load(source + place)
    lane = tl.where(place % 2 == 0, a + place, b + place)
    tl.store(out + program * BLOCK + place, first + tl.load(lane))
    tl.store(tl.where(place % 2 == 0, out + place, a + place), 1.0, mask=program > 1000)


@triton.jit(noinline=True)
def helper(value, flag):
    if flag:
        return value * 2
    return value + 100


@triton.jit
def calls(x, out, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    for column in range(0, BLOCK):
        place = program * BLOCK + column
        tl.store(out + place, helper(tl.load(x + place), program % 2 == 0))


@triton.jit
def descriptors(x, out, m, n, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [m, n], [n, 1], [BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(out, [m, n], [n, 1], [BLOCK, BLOCK])
    row, column = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    target.store([row, column], source.load([row, column]) * 2 + 1)


@triton.jit
def host_descriptors(source, target, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    target.store([row, 0], source.load([row, 0]) + 1)


@triton.jit
def descriptor_lines(x, out, lines, m, n, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [m, n], [n, 1], [1, BLOCK], padding_option="nan")
    line = tl.load(lines + tl.arange(0, 8))
    picked = source.gather(line, 0)
    target = tl.make_tensor_descriptor(out, [8, n], [n, 1], [1, BLOCK])
    target.scatter(picked, tl.arange(0, 8), 0)


@triton.jit
def descriptor_sum(x, out, n, BLOCK: tl.constexpr):
    place = tl.arange(0, 8)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    value = tl.load(x + tl.program_id(0) * 8 * BLOCK + place)
    target = tl.make_tensor_descriptor(out, [6, n], [n, 1], [8, BLOCK])
    target.atomic_add([0, 0], value)


@triton.jit
def shapes(x, out, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    value = tl.load(x + tl.program_id(0) * BLOCK + place)
    pairs = tl.reshape(value, (BLOCK // 2, 2))
    even, odd = tl.split(pairs)
    swapped = tl.reshape(tl.join(odd, even), (BLOCK,))
    flipped = tl.flip(swapped, 0)
    twice = tl.trans(tl.join(flipped, flipped * 2))
    picked = tl.gather(value, (place * 3) % BLOCK, 0)
    tl.store(out + tl.program_id(0) * BLOCK + place, tl.sum(twice, 0) + picked * 100)


@triton.jit
def concatenated(x, out, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place)
    row = out + tl.program_id(0) * 2 * BLOCK
    tl.store(row + tl.arange(0, 2 * BLOCK), tl.cat(value, -value))


@triton.jit
def counts(x, out, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place, mask=place < n, other=0)
    histogram = tl.histogram(value, BINS, mask=place < n)
    tl.store(out + tl.program_id(0) * BINS + tl.arange(0, BINS), histogram)


@triton.jit
def _product(a, b):
    return a * b


@triton.jit
def _left_most(value, place, other_value, other_place):
    keep = (value > other_value) | ((value == other_value) & (place < other_place))
    return tl.where(keep, value, other_value), tl.where(keep, place, other_place)


@triton.jit
def folds(x, out, places, BLOCK: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.arange(0, BLOCK)[:, None], tl.arange(0, COLUMNS)[None, :]
    place = tl.program_id(0) * BLOCK * COLUMNS + row * COLUMNS + column
    value = tl.load(x + place)
    total = tl.sum(value, 0)
    scanned = tl.cumsum(value, 0, reverse=True)
    products = tl.associative_scan(value, 1, _product)
    best, where = tl.reduce((value, row + 0 * column), 0, _left_most)
    base = out + tl.program_id(0) * 4 * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(base, total)
    tl.store(base + COLUMNS, tl.sum(scanned, 0))
    tl.store(base + 2 * COLUMNS, tl.sum(products, 0))
    tl.store(base + 3 * COLUMNS, best)
    tl.store(places + tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS), where)


@triton.jit
def wide_integers(x, y, out, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    a, b = tl.load(x + place), tl.load(y + place)
    unsigned = (a.to(tl.uint64) // 3) + (b.to(tl.uint64) >> 7)
    tl.store(out + place, tl.umulhi(a.to(tl.uint64), b.to(tl.uint64)).to(tl.int64))
    tl.store(out + BLOCK + place, unsigned.to(tl.int64))
    tl.store(
        out + 2 * BLOCK + place, (a < b).to(tl.int64) * 2 + (a.to(tl.uint64) < b.to(tl.uint64))
    )


@triton.jit
def functions(x, out, n, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    value = tl.load(x + place)
    row = out + place
    tl.store(row, tl.sigmoid(value))
    tl.store(row + n, tl.erf(value))
    tl.store(row + 2 * n, libdevice.tanh(value))
    tl.store(row + 3 * n, libdevice.pow(tl.abs(value) + 0.5, value))
    tl.store(row + 4 * n, libdevice.log1p(tl.abs(value)))
    tl.store(row + 5 * n, tl.rsqrt(tl.abs(value) + 1))
    tl.store(row + 6 * n, tl.fma(value, value, value))
    tl.store(row + 7 * n, tl.clamp(value, -0.5, 0.5))
    tl.store(row + 8 * n, tl.floor(value) + tl.ceil(value))
    tl.store(row + 9 * n, libdevice.isnan(value / 0.0 * 0.0).to(tl.float32))
    tl.store(row + 10 * n, libdevice.rint(value * 2))
    tl.store(row + 11 * n, tl.div_rn(value, 3.0) + tl.sqrt_rn(tl.abs(value)))
    tl.store(row + 12 * n, libdevice.atan2(value, value + 1))
    tl.store(row + 13 * n, libdevice.expm1(value))


@triton.jit
def casts(x, half, brain, octet, whole, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    value = tl.load(x + place)
    tl.store(half + place, value.to(tl.float16))
    tl.store(brain + place, value.to(tl.bfloat16))
    tl.store(octet + place, value.to(tl.float8e4nv).to(tl.float32))
    tl.store(whole + place, value.to(tl.int32))


@triton.jit
def brain_arithmetic(x, y, out, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    a, b = tl.load(x + place), tl.load(y + place)
    tl.store(out + place, a * b + a)


@triton.jit
def bits(x, out, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    pattern = tl.load(x + place).to(tl.int32, bitcast=True)
    tl.store(out + place, (pattern ^ -2147483648).to(tl.float32, bitcast=True))


@triton.jit
def flags(x, seen, out, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    value = tl.load(x + place)
    tl.store(seen + place, value > 0)
    tl.store(out + place, tl.where(tl.load(seen + place), value, -value))


@triton.jit
def atomics(values, numbers, old, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    value = (lane * 7 + program * 3) % 11
    tl.atomic_add(numbers + lane % 4, value)
    tl.atomic_max(numbers + 4 + lane % 4, value)
    tl.atomic_min(numbers + 8 + lane % 4, value)
    tl.atomic_and(numbers + 12 + lane % 4, value | 8)
    tl.atomic_or(numbers + 16 + lane % 4, value)
    tl.atomic_xor(numbers + 20 + lane % 4, value)
    tl.atomic_max(values + lane % 4, value.to(tl.float32) - 5.5)
    tl.atomic_add(values + 4 + lane % 4, value.to(tl.float32))
    place = tl.atomic_add(numbers + 24 + lane % 2, 1)
    tl.store(old + program * BLOCK + lane, place)


@triton.jit
def swaps(slots, got, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    seen = tl.atomic_cas(slots + lane // 2, lane * 0, lane + 1)
    tl.store(got + program * BLOCK + lane, seen)


@triton.jit
def half_dot(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, MODE: tl.constexpr):
    row, column, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + row[:, None] * K + inner[None, :])
    right = tl.load(b + inner[:, None] * N + column[None, :])
    result = tl.dot(left, right, input_precision=MODE)
    tl.store(out + row[:, None] * N + column[None, :], result)


@triton.jit
def batched_dot(a, b, out, B: tl.constexpr, M: tl.constexpr):
    batch, row, column = tl.arange(0, B), tl.arange(0, M), tl.arange(0, M)
    place = batch[:, None, None] * M * M + row[None, :, None] * M + column[None, None, :]
    result = tl.dot(tl.load(a + place), tl.load(b + place), input_precision="ieee")
    tl.store(out + place, result)


@triton.jit
def byte_dot(a, b, out, M: tl.constexpr):
    row, column = tl.arange(0, M), tl.arange(0, M)
    place = row[:, None] * M + column[None, :]
    tl.store(out + place, tl.dot(tl.load(a + place), tl.load(b + place)))


@triton.jit
def three_axes(out):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    place = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
    tl.store(out + place, x + 10 * y + 100 * z)


@triton.jit
def wraps(out, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * n + tl.arange(0, BLOCK)
    tl.store(out + tl.arange(0, BLOCK), place)


@triton.jit
def scaled_dot(
    a,
    scale_a,
    b,
    scale_b,
    out,
    M: tl.constexpr,
    K: tl.constexpr,
    PACK: tl.constexpr,
    KIND: tl.constexpr,
):
    row, column, group = tl.arange(0, M), tl.arange(0, M), tl.arange(0, K // 32)
    packed, inner = tl.arange(0, K // PACK), tl.arange(0, K)
    left = tl.load(a + row[:, None] * (K // PACK) + packed[None, :])
    right = tl.load(b + inner[:, None] * M + column[None, :])
    left_scale = tl.load(scale_a + row[:, None] * (K // 32) + group[None, :])
    right_scale = tl.load(scale_b + column[:, None] * (K // 32) + group[None, :])
    result = tl.dot_scaled(left, left_scale, KIND, right, right_scale, "e5m2")
    tl.store(out + row[:, None] * M + column[None, :], result)


@triton.jit
def bit_counts(x, out, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    value = tl.load(x + place)
    tl.store(out + place, libdevice.popc(value))
    tl.store(out + BLOCK + place, libdevice.clz(value))
    tl.store(out + 2 * BLOCK + place, libdevice.ffs(value))
    tl.store(out + 3 * BLOCK + place, libdevice.brev(value))


@triton.jit
def polling(flag, seen):
    program = tl.program_id(0)
    if program > 0:
        tl.store(seen + program, tl.atomic_poll(flag + program - 1, 1).to(tl.int32))
    tl.atomic_store(flag + program, 1)
