"""Pairs of measurements in the order A B B A A B B A..., and what may be concluded from their ratios.

A ratio above 1 means that railmesh is better, whatever the figure: rates are ours / theirs, times are theirs / ours.
"""
import math
import statistics

# Two-sided 95 % of Student's t, by degrees of freedom (from 30 on the normal value is within 4 %).
T_95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228,
        11: 2.201, 12: 2.179, 13: 2.160, 14: 2.145, 15: 2.131, 16: 2.120, 17: 2.110, 18: 2.101, 19: 2.093, 20: 2.086,
        21: 2.080, 22: 2.074, 23: 2.069, 24: 2.064, 25: 2.060, 26: 2.056, 27: 2.052, 28: 2.048, 29: 2.045}
AHEAD, EQUAL = 1.0, 0.97


def pairs(count, ours, theirs):
    """Measures `count` pairs: ours first in pair 1, theirs first in pairs 2 and 3, ours in 4 and 5, and so on."""
    for index in range(count):
        if index % 4 in (0, 3):
            a, b = ours(), theirs()
        else:
            b, a = theirs(), ours()
        yield a, b


def bounds(ratios):
    """Mean and 95 % bounds of the ratios: Student's t on their logarithms, and back."""
    logs = [math.log(r) for r in ratios]
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(mean), float("nan"), float("nan")
    half = T_95.get(len(logs) - 1, 1.96) * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def word(low):
    """What DESIGN calls a lower bound."""
    return "ahead" if low > AHEAD else "equal" if low >= EQUAL else "not reached"


def compare(name, unit, better, count, ours, theirs, names=("railmesh", "peer")):
    """Runs the pairs, prints each as it comes, and returns the row as a dict."""
    rows = []
    for a, b in pairs(count, ours, theirs):
        ratio = a / b if better == "higher" else b / a
        rows.append({"ours": a, "theirs": b, "ratio": ratio})
        print(f"  {name} pair {len(rows):2}: {names[0]} {a:.3f} {unit}, {names[1]} {b:.3f} {unit}, ratio {ratio:.3f}",
              flush=True)
    ratios = [row["ratio"] for row in rows]
    mean, low, high = bounds(ratios)
    result = {"name": name, "unit": unit, "better": better, "pairs": rows,
              "median_ours": statistics.median(row["ours"] for row in rows),
              "median_theirs": statistics.median(row["theirs"] for row in rows),
              "median_ratio": statistics.median(ratios), "mean_ratio": mean, "low": low, "high": high,
              "word": word(low)}
    print(f"{name}: median {result['median_ours']:.3f} against {result['median_theirs']:.3f} {unit}, ratio median "
          f"{result['median_ratio']:.3f}, mean {mean:.3f}, 95 % [{low:.3f}, {high:.3f}]: {result['word']}", flush=True)
    return result


def markdown(result):
    """One row with all ratios as Markdown."""
    ratios = " ".join(f"{row['ratio']:.3f}" for row in result["pairs"])
    return (f"| {result['name']} | {result['median_ours']:.2f} | {result['median_theirs']:.2f} {result['unit']} | "
            f"{result['median_ratio']:.3f} | {result['low']:.3f} to {result['high']:.3f} | {result['word']} |\n\n"
            f"ratios of {result['name']}: {ratios}")
