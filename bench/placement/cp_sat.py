# CP-SAT for a cluster in numbers (bench/placement/world.ts). Reads JSON on stdin and prints one
# line of JSON. The model is solved as people usually would: the whole model at once, or in stages
# that begin with starts alone. `cpu` is the CPU time of building and solving, of all threads,
# without the start of Python.
import json
import sys
import time

from ortools.sat.python import cp_model

world = json.load(sys.stdin)
units = world["units"]
hosts = range(len(world["ram"]))
stranded = [u for u, unit in enumerate(units) if unit["stranded"]]
movers = [u for u, unit in enumerate(units) if not unit["stranded"]]
began = time.perf_counter()
spent = time.process_time()


def left():
    return max(0.05, world["seconds"] - (time.perf_counter() - began))


class Asked:
    """A model of the stranded, and of the others too where they may move."""

    def __init__(self, moving, must, known=None):
        self.model = cp_model.CpModel()
        self.here = {}
        self.chosen = stranded + (movers if moving else [])
        self.moving = moving
        for u in self.chosen:
            own = []
            for host in units[u]["may"]:
                var = self.here[u, host] = self.model.new_bool_var("")
                own.append(var)
                at = known[u] if known else units[u]["home"]
                self.model.add_hint(var, at == host)
            if must or not units[u]["stranded"]:
                self.model.add_exactly_one(own)
            else:
                self.model.add_at_most_one(own)
        still = [] if moving else movers
        for size in ("ram", "cpu"):
            used = [[] for _ in hosts]
            room = list(world[size])
            for u in still:
                room[units[u]["home"]] -= units[u][size]
            for (u, host), var in self.here.items():
                used[host].append(units[u][size] * var)
            for host in hosts:
                self.model.add(sum(used[host]) <= max(0, room[host]))
        apart = {}
        taken = {(group, domain) for group, domain in world["taken"]}
        taken |= {(group, world["domain"][units[u]["home"]]) for u in still for group in units[u]["groups"]}
        for (u, host), var in self.here.items():
            for group in units[u]["groups"]:
                key = (group, world["domain"][host])
                apart.setdefault(key, []).append(var)
        for key, members in apart.items():
            if key in taken:
                self.model.add(sum(members) == 0)
            else:
                self.model.add_at_most_one(members)
        staying = [self.here[u, units[u]["home"]] for u in movers] if moving else []
        weights = [units[u]["weight"] for u in movers] if moving else []
        self.moved = sum(weights) - sum(weight * var for weight, var in zip(weights, staying))

    def started(self, priority):
        return sum(
            units[u]["priorities"].count(priority) * var
            for (u, _), var in self.here.items()
            if units[u]["stranded"] and priority in units[u]["priorities"]
        )

    def solve(self):
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = left()
        solver.parameters.num_workers = 2
        status = solver.status_name(solver.solve(self.model))
        if status not in ("OPTIMAL", "FEASIBLE"):
            return status, None
        place = [unit["home"] for unit in units]
        for u in stranded:
            place[u] = -1
        for (u, host), var in self.here.items():
            if solver.value(var):
                place[u] = host
        return status, place


def everybody():
    """The fewest migrations with a place for all."""
    if world["ask"] == "whole":
        asked = Asked(True, True)
        asked.model.minimize(asked.moved)
        return asked.solve()
    status, place = Asked(False, True).solve()
    if place:
        return "OPTIMAL", place
    for most in (2, 4, 8, 16, None):
        asked = Asked(True, True)
        if most:
            asked.model.add(asked.moved <= most)
        asked.model.minimize(asked.moved)
        status, place = asked.solve()
        if status != "INFEASIBLE":
            break
    return status, place


def triage(moving, known, floor):
    """Level by level the most that starts; `floor` is what is known to start of each."""
    place, proved, least = known, True, []
    for priority in sorted({p for u in stranded for p in units[u]["priorities"]}, reverse=True):
        all_of = sum(units[u]["priorities"].count(priority) for u in stranded)
        asked = Asked(moving, False, place)
        for level, count in least:
            asked.model.add(asked.started(level) >= count)
        asked.model.maximize(asked.started(priority))
        best = min(floor.get(priority, -1), all_of)
        if best < all_of or place is None or not keeps(place, least + [(priority, all_of)]):
            status, found = asked.solve()
            place = found or place
            proved = proved and status == "OPTIMAL"
        best = sum(units[u]["priorities"].count(priority) for u in stranded if place and place[u] >= 0)
        least.append((priority, best))
    return proved, place, dict(least)


def keeps(place, least):
    return all(
        sum(units[u]["priorities"].count(priority) for u in stranded if place[u] >= 0) >= count for priority, count in least
    )


answer = {"status": "INFEASIBLE"}
if not world["triage"]:
    status, place = everybody()
    answer = {"status": status, "place": place}
if answer["status"] == "INFEASIBLE":
    known, floor = None, {}
    if world["ask"] == "stages":
        _, known, floor = triage(False, None, {})
    proved, place, least = triage(True, known, floor)
    answer = {"status": "TRIAGE", "place": place, "proved": proved, "alone": known, "cpu": time.process_time() - spent}
    # Not a part of the problem to be solved. An order is found sooner if there are few migrations.
    asked = Asked(True, False, place)
    for level, count in least.items():
        asked.model.add(asked.started(level) >= count)
    asked.model.minimize(asked.moved)
    answer["place"] = asked.solve()[1] or place
answer["cpu"] = answer.get("cpu", time.process_time() - spent)
print(json.dumps(answer))
