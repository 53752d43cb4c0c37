#!/usr/bin/env python3
"""Plots of a report of `minidirac validate --json FILE`: error histograms of the operators, true
error against the a-priori bound, residual against iteration, deviation of the pion correlator.

usage: plot_validate.py REPORT.json [-o PREFIX]      writes PREFIX-errors.png and PREFIX-solver.png
"""
import argparse
import json

from plotting import pyplot


def case_name(row):
    name = f"{row['backend']} {row['precision']} {row['reconstruct']}"
    return name if row["packing"] == "none" else f"{name} {row['packing']}"


def solver_name(row):
    inner = row["inner"]
    return row["precision"] if inner == "none" else f"{row['precision']} / {inner}"


def plot_errors(report, path):
    lowest, step = report["histogram_lowest_log10"], report["histogram_step_log10"]
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(13, 5), constrained_layout=True)
    for row in report["rows"]:
        counts = row["histogram"]
        total = sum(counts[1:])
        if row["operation"] != "Deo" or total == 0:
            continue
        edges = [lowest + step * i for i in range(len(counts) + 1)]
        left.stairs([c / total for c in counts], edges, label=case_name(row))
    left.set_xlabel("log10 of error / largest component of the site")
    left.set_ylabel("share of components")
    left.set_title("Deo against double")
    left.legend(fontsize="x-small")
    shown = [row for row in report["rows"] if row["bound"] and row["rel_l2_error"]]
    places = range(len(shown))
    right.semilogy(places, [row["bound"] for row in shown], "_", markersize=10, label="bound")
    right.semilogy(places, [row["rel_l2_error"] for row in shown], ".", label="relative L2 error")
    right.set_xticks(list(places))
    right.set_xticklabels([f"{case_name(r)} {r['operation']}" for r in shown], rotation=90, fontsize=5)
    right.set_title("error and a-priori bound")
    right.legend()
    figure.savefig(path, dpi=150)


def plot_solver(report, path):
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(13, 5), constrained_layout=True)
    for number, row in enumerate(report["solver"]):
        style = {"label": solver_name(row), "color": f"C{number}"}
        if row.get("residual_history"):
            left.semilogy(row["residual_history"], **style)
        if row["reachable_residual"] and row["inner"] == "none":
            left.axhline(row["reachable_residual"], color=style["color"], linestyle=":")
        deviations = [abs(p) if p else float("nan") for p in row["correlator_percent"]]
        if any(d == d for d in deviations):
            right.semilogy(deviations, "o-", **style)
    left.set_xlabel("iteration")
    left.set_ylabel("residual of the iteration; dotted: the true one that it ends at")
    left.legend(fontsize="small")
    right.set_xlabel("t")
    right.set_ylabel("deviation of the pion correlator in per cent")
    right.legend(fontsize="small")
    figure.suptitle(f"{report['lattice'].split('/')[-1]}, mass {report['mass']:g}")
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", help="JSON report of minidirac validate")
    parser.add_argument("-o", "--output", default="validate", help="prefix of the pictures [validate]")
    options = parser.parse_args()
    with open(options.report, encoding="utf-8") as file:
        report = json.load(file)
    plot_errors(report, f"{options.output}-errors.png")
    plot_solver(report, f"{options.output}-solver.png")


if __name__ == "__main__":
    main()
