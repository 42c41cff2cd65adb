# SPDX-License-Identifier: Apache-2.0
"""Reads session directories of gpufl: live and sealed files, rows of batches, and sums over them."""
import json
import math
import pathlib
import subprocess


def session_lines(session, channel="*"):
    session = pathlib.Path(session)
    for path in sorted(session.glob(f"{channel}.log")) + sorted(session.glob(f"{channel}.*.log")) + sorted(
            session.glob(f"{channel}.*.log.zst")):
        if path.suffix == ".zst":
            text = subprocess.run(["zstdcat", str(path)], capture_output=True, check=True).stdout
        else:
            text = path.read_bytes()
        for line in text.split(b"\n"):
            try:
                yield json.loads(line)
            except ValueError:
                continue


def batch_rows(record):
    if "rows" in record:
        return [dict(zip(record["columns"], row)) for row in record["rows"]]
    columns = []
    for name, cells in zip(record["columns"], record["cols"]):
        if name in record.get("delta", []):
            total, whole = 0, []
            for cell in cells:  # the difference to the last known one
                total += cell or 0
                whole.append(None if cell is None else total)
            cells = whole
        columns.append(cells)
    return [dict(zip(record["columns"], row)) for row in zip(*columns)]


def rows_of(session, channel, kind):
    """All rows of a batch type as dicts, with the time they begin; plus the channel's dictionaries."""
    dictionaries, result = {}, []
    for record in session_lines(session, channel):
        if record["type"] == "dictionary_update":
            for name, entries in record.items():
                if isinstance(entries, dict):
                    dictionaries.setdefault(name, {}).update({int(i): t for i, t in entries.items()})
        if record["type"] == kind:
            for item in batch_rows(record):
                item["start_ns"] = record.get("base_time_ns", 0) + item.get("dt_ns", 0)
                result.append(item)
    return result, dictionaries


def records_of(session, channel, *kinds):
    return [record for record in session_lines(session, channel) if record["type"] in kinds]


def selected_engine(session):
    """What was granted in the end, and why it is less than what was asked for."""
    answers = records_of(session, "scope", "capture_capabilities")
    if not answers:
        return None, "the log does not say what was granted"
    refused = [f"{part.get('feature')} {part.get('status')}: {part.get('message') or part.get('reason_code')}"
               for part in answers[-1].get("capabilities", [])
               if part.get("requested") and part.get("status") != "collected"]
    return answers[-1].get("selected_engine"), "; ".join(refused)


def losses(session):
    """{reason: count}; None: how many is not known."""
    result = {}
    for record in records_of(session, "system", "loss"):
        count, before = record.get("count"), result.get(record["reason"], 0)
        result[record["reason"]] = None if count is None or before is None else before + count
    return result


def pc_samples(session):
    """Rows of PC samples with the function's name in `function`."""
    rows, names = rows_of(session, "scope", "profile_sample_batch")
    functions = names.get("function_dict", {})
    samples = [row for row in rows if row["sample_kind"] == 0]
    for row in samples:
        name = functions.get(row["function_id"], f"function {row['function_id']}")
        row["function"] = name.split("@")[0].split("(")[0]
    return samples


def distribution(samples, column):
    """{function: {value of the column: samples}}"""
    result = {}
    for row in samples:
        here = result.setdefault(row["function"], {})
        here[row[column]] = here.get(row[column], 0) + row["metric_value"]
    return result


def cosine(a, b):
    lengths = math.sqrt(sum(v * v for v in a.values())) * math.sqrt(sum(v * v for v in b.values()))
    return sum(value * b.get(key, 0) for key, value in a.items()) / lengths if lengths else 0.0


def busy_s(spans):
    """Length of the union of (start_ns, end_ns)."""
    total, reached = 0, 0
    for start, end in sorted(spans):
        start = max(start, reached)
        total += max(0, end - start)
        reached = max(reached, end)
    return total / 1e9
