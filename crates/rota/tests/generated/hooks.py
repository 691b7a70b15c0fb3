"""What cannot be made up is filled in, and of two parts of a request that contradict each other by chance one gives way, so
that what lies behind is reached too. Every fourth request is sent as it was generated."""

import itertools
import os

import schemathesis

turns = itertools.count()


@schemathesis.hook
def before_call(context, case, kwargs):
    if next(turns) % 4 == 0:
        return
    # A version that nobody holds.
    case.headers.pop("If-Match", None)
    if case.meta.generation.mode.value != "positive" or not isinstance(case.body, dict):
        return
    if case.operation.path.endswith("/jobs"):
        case.headers.pop("Idempotency-Key", None)
        fill_in(case.body)
    elif case.operation.path.endswith("/jobs/batch"):
        for job in case.body["jobs"]:
            fill_in(job)
    elif case.operation.path == "/api/v1/session":
        case.body = {"api_key": os.environ["ROTA_API_KEY"]}


def fill_in(job):
    """A type that somebody runs, with a payload that it takes, and nothing that is kept for a later version. Half of them wait."""
    job["input"] = {"type": "wait", "payload": {"millis": 1}}
    if next(turns) % 2:
        job["runAt"] = 4_102_444_800_000
    for name in ("queue", "groupId", "waitingFor", "orderKey", "expiresAt"):
        job.pop(name, None)
