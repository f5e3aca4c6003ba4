# The whole model of every VM and host for CP-SAT: an instance (placement/instance.ts) on stdin, one line of JSON out.
import json
import sys

from ortools.sat.python import cp_model

one = json.load(sys.stdin)
model = cp_model.CpModel()
hosts = range(one["targets"])
wanted = set(one["wanted"])
chosen = [vm for vm in range(len(one["home"])) if vm in wanted or one["movable"][vm]]
place = {}
for vm in chosen:
    allowed = one["allows"][one["rule"][vm]]
    own = []
    for host in hosts:
        if allowed[host]:
            place[vm, host] = model.new_bool_var("")
            own.append(place[vm, host])
            model.add_hint(place[vm, host], one["home"][vm] == host)
    model.add_exactly_one(own)
for sizes, rooms in (("vmRam", "hostRam"), ("vmCpu", "hostCpu")):
    for host in hosts:
        used = [one[sizes][vm] * place[vm, host] for vm in chosen if (vm, host) in place]
        model.add(sum(used) <= one[rooms][host])
apart = {}
for (vm, host), here in place.items():
    for group in one["groupsOf"][vm]:
        apart.setdefault((group, one["domain"][host]), []).append(here)
for members in apart.values():
    model.add_at_most_one(members)
movers = [vm for vm in chosen if one["movable"][vm]]
model.minimize(len(movers) - sum(place[vm, one["home"][vm]] for vm in movers))
solver = cp_model.CpSolver()
solver.parameters.max_time_in_seconds = 10
solver.parameters.num_workers = 2
status = solver.status_name(solver.solve(model))
answer = {"status": status}
if status in ("OPTIMAL", "FEASIBLE"):
    answer["migrations"] = round(solver.objective_value)
    answer["bound"] = solver.best_objective_bound
print(json.dumps(answer))
