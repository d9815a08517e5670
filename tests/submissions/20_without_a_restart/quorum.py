import ast
import json
import time
from datetime import timedelta


def wait_for_the_newest(store, number, replicas):
    before, decided = f"{number - 1}/decided", f"{number}/decided"
    while store.check([before]) and not store.check([decided]):
        here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
        newest = max(ast.literal_eval(store.get(before).decode()).values())
        if max(int(store.get(f"{number}/{r}")) for r in here) >= newest:
            return
        time.sleep(0.01)


# %% right: whoever proposes first
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    newest = -1
    if store.check([f"{number - 1}/decided"]):
        newest = max(ast.literal_eval(store.get(f"{number - 1}/decided").decode()).values())
    give_up = time.monotonic() + patience
    while not store.check([f"{number}/decided"]):
        here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
        mine = {r: int(store.get(f"{number}/{r}")) for r in here}
        enough = set(expected) <= set(here) or time.monotonic() > give_up
        if enough and max(mine.values()) >= newest:
            store.compare_set(f"{number}/decided", "", repr(mine))
        time.sleep(0.01)
    return ast.literal_eval(store.get(f"{number}/decided").decode())


# %% right: the newest step has a key of its own, which only decisions write
def quorum(store, number, me, step, expected, replicas, patience):
    own = dist.PrefixStore(f"round {number}", store)
    own.set(f"step {me}", str(step))
    start = time.monotonic()
    while not own.check(["decision"]):
        time.sleep(0.005)
        members = {}
        for r in range(replicas):
            if own.check([f"step {r}"]):
                members[r] = int(own.get(f"step {r}").decode())
        waits = time.monotonic() - start < patience
        if waits and not all(r in members for r in expected):
            continue
        if store.check(["newest"]) and max(members.values()) < int(store.get("newest")):
            continue
        own.compare_set("decision", "", json.dumps(members))
    decided = {int(r): s for r, s in json.loads(own.get("decision")).items()}
    store.set("newest", str(max(decided.values())))
    return decided


# %% wrong: one that has nothing decides alone | wrong | is: a decision without the newest steps
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    give_up = time.monotonic() + patience
    while not store.check([f"{number}/decided"]) and time.monotonic() < give_up:
        if all(store.check([f"{number}/{r}"]) for r in expected):
            break
        time.sleep(0.01)
    here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
    mine = repr({r: int(store.get(f"{number}/{r}")) for r in here})
    return ast.literal_eval(store.compare_set(f"{number}/decided", "", mine).decode())


# %% wrong: the patience starts again whenever another one comes | too slow | is: the patience starts again
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    newest = -1
    if store.check([f"{number - 1}/decided"]):
        newest = max(ast.literal_eval(store.get(f"{number - 1}/decided").decode()).values())
    seen, give_up = 0, 0.0
    while not store.check([f"{number}/decided"]):
        here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
        if len(here) > seen:
            seen, give_up = len(here), time.monotonic() + patience
        mine = {r: int(store.get(f"{number}/{r}")) for r in here}
        enough = set(expected) <= set(here) or time.monotonic() > give_up
        if enough and max(mine.values()) >= newest:
            store.compare_set(f"{number}/decided", "", repr(mine))
        time.sleep(0.01)
    return ast.literal_eval(store.get(f"{number}/decided").decode())


# %% wrong: it writes past the store that it is given, and is never killed | wrong | is: writes past the store
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    store = store.real
    newest = -1
    if store.check([f"{number - 1}/decided"]):
        newest = max(ast.literal_eval(store.get(f"{number - 1}/decided").decode()).values())
    give_up = time.monotonic() + patience
    while not store.check([f"{number}/decided"]):
        here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
        mine = {r: int(store.get(f"{number}/{r}")) for r in here}
        enough = set(expected) <= set(here) or time.monotonic() > give_up
        if enough and max(mine.values()) >= newest:
            store.compare_set(f"{number}/decided", "", repr(mine))
        time.sleep(0.01)
    return ast.literal_eval(store.get(f"{number}/decided").decode())


# %% wrong: each decides by itself | wrong | is: the round is decided twice
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    give_up = time.monotonic() + patience
    while time.monotonic() < give_up:
        if all(store.check([f"{number}/{r}"]) for r in expected):
            break
        time.sleep(0.01)
    here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
    return {r: int(store.get(f"{number}/{r}")) for r in here}


# %% wrong: replica 0 decides | crashed | is: waits for a key that is never set
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    if me == 0:
        give_up = time.monotonic() + patience
        while time.monotonic() < give_up:
            if all(store.check([f"{number}/{r}"]) for r in expected):
                break
            time.sleep(0.01)
        here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
        store.set(f"{number}/decided", repr({r: int(store.get(f"{number}/{r}")) for r in here}))
    return ast.literal_eval(store.get(f"{number}/decided").decode())


# %% wrong: it waits for all of them | crashed | is: waits for a key that is never set
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    mine = repr({r: int(store.get(f"{number}/{r}")) for r in expected})
    return ast.literal_eval(store.compare_set(f"{number}/decided", "", mine).decode())


# %% wrong: it always waits as long as it may | too slow | is: waits although all have come
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    time.sleep(patience)
    here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
    mine = repr({r: int(store.get(f"{number}/{r}")) for r in here})
    return ast.literal_eval(store.compare_set(f"{number}/decided", "", mine).decode())


# %% wrong: it does not wait | wrong | is: decides before patience is over
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
    mine = repr({r: int(store.get(f"{number}/{r}")) for r in here})
    return ast.literal_eval(store.compare_set(f"{number}/decided", "", mine).decode())


# %% wrong: only those who are expected | wrong | is: only the expected ones
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    give_up = time.monotonic() + patience
    while not store.check([f"{number}/decided"]) and time.monotonic() < give_up:
        if all(store.check([f"{number}/{r}"]) for r in expected):
            break
        time.sleep(0.01)
    here = [r for r in expected if store.check([f"{number}/{r}"])]
    mine = repr({r: int(store.get(f"{number}/{r}")) for r in here})
    return ast.literal_eval(store.compare_set(f"{number}/decided", "", mine).decode())


# %% wrong: keys without the round | wrong | is: keys without the round's number
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(str(me), str(step))
    give_up = time.monotonic() + patience
    while time.monotonic() < give_up:
        if all(store.check([str(r)]) for r in expected):
            break
        time.sleep(0.01)
    here = [r for r in range(replicas) if store.check([str(r)])]
    mine = repr({r: int(store.get(str(r))) for r in here})
    return ast.literal_eval(store.compare_set("decided", "", mine).decode())


# %% wrong: check, then set: two may do so at once | wrong | is: each decides by itself
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    give_up = time.monotonic() + patience
    while not store.check([f"{number}/decided"]) and time.monotonic() < give_up:
        if all(store.check([f"{number}/{r}"]) for r in expected):
            break
        time.sleep(0.01)
    here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
    mine = {r: int(store.get(f"{number}/{r}")) for r in here}
    if store.check([f"{number}/decided"]):
        return ast.literal_eval(store.get(f"{number}/decided").decode())
    store.set(f"{number}/decided", repr(mine))
    return mine


# %% wrong: the members' numbers as texts | wrong | is: not a dict of ints
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    give_up = time.monotonic() + patience
    while not store.check([f"{number}/decided"]) and time.monotonic() < give_up:
        if all(store.check([f"{number}/{r}"]) for r in expected):
            break
        time.sleep(0.01)
    here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
    mine = json.dumps({r: int(store.get(f"{number}/{r}")) for r in here})
    return json.loads(store.compare_set(f"{number}/decided", "", mine))


# %% wrong: a list of members | wrong | is: not a dict of ints
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    give_up = time.monotonic() + patience
    while not store.check([f"{number}/decided"]) and time.monotonic() < give_up:
        if all(store.check([f"{number}/{r}"]) for r in expected):
            break
        time.sleep(0.01)
    mine = repr([r for r in range(replicas) if store.check([f"{number}/{r}"])])
    return ast.literal_eval(store.compare_set(f"{number}/decided", "", mine).decode())


# %% wrong: waits with the store's own wait, one after the other | too slow | is: waits longer than patience
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    for r in expected:
        try:
            store.wait([f"{number}/{r}"], timedelta(seconds=patience + 2))
        except RuntimeError:
            pass
    here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
    mine = repr({r: int(store.get(f"{number}/{r}")) for r in here})
    return ast.literal_eval(store.compare_set(f"{number}/decided", "", mine).decode())


# %% wrong: it waits for all that there may be | too slow | is: waits although all have come
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    give_up = time.monotonic() + patience
    while not store.check([f"{number}/decided"]) and time.monotonic() < give_up:
        if all(store.check([f"{number}/{r}"]) for r in range(replicas)):
            break
        time.sleep(0.01)
    wait_for_the_newest(store, number, replicas)
    here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
    mine = repr({r: int(store.get(f"{number}/{r}")) for r in here})
    return ast.literal_eval(store.compare_set(f"{number}/decided", "", mine).decode())


# %% wrong: whoever counts first decides, and may be killed before it has | crashed | is: waits for a key that is never set
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    give_up = time.monotonic() + patience
    while not store.check([f"{number}/decided"]) and time.monotonic() < give_up:
        if all(store.check([f"{number}/{r}"]) for r in expected):
            break
        time.sleep(0.01)
    wait_for_the_newest(store, number, replicas)
    if store.add(f"{number}/lock", 1) == 1:
        here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
        mine = repr({r: int(store.get(f"{number}/{r}")) for r in here})
        store.set(f"{number}/decided", mine)
    return ast.literal_eval(store.get(f"{number}/decided").decode())


# %% wrong: no look at the decision while it waits | too slow | is: does not look for the decision
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    give_up = time.monotonic() + patience
    while time.monotonic() < give_up:
        if all(store.check([f"{number}/{r}"]) for r in expected):
            break
        time.sleep(0.01)
    wait_for_the_newest(store, number, replicas)
    here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
    mine = repr({r: int(store.get(f"{number}/{r}")) for r in here})
    return ast.literal_eval(store.compare_set(f"{number}/decided", "", mine).decode())


# %% wrong: a leader, whom the others poll | timed out | is: a replica that is relied on to decide
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    if me == min(expected):
        give_up = time.monotonic() + patience
        while time.monotonic() < give_up:
            if all(store.check([f"{number}/{r}"]) for r in expected):
                break
            time.sleep(0.01)
        here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
        store.set(f"{number}/decided", repr({r: int(store.get(f"{number}/{r}")) for r in here}))
    while not store.check([f"{number}/decided"]):
        time.sleep(0.01)
    return ast.literal_eval(store.get(f"{number}/decided").decode())


# %% wrong: as many as are expected, whoever they are | wrong | is: decides before patience is over
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    store.add(f"{number}/count", 1)
    give_up = time.monotonic() + patience
    while time.monotonic() < give_up and not store.check([f"{number}/decided"]):
        if store.add(f"{number}/count", 0) >= len(expected):
            break
        time.sleep(0.005)
    wait_for_the_newest(store, number, replicas)
    here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
    mine = repr({r: int(store.get(f"{number}/{r}")) for r in here})
    return ast.literal_eval(store.compare_set(f"{number}/decided", "", mine).decode())


# %% wrong: patience for each that is missing | too slow | is: the patience starts again
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    for r in expected:
        give_up = time.monotonic() + patience
        while time.monotonic() < give_up and not store.check([f"{number}/decided"]):
            if store.check([f"{number}/{r}"]):
                break
            time.sleep(0.005)
    wait_for_the_newest(store, number, replicas)
    here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
    mine = repr({r: int(store.get(f"{number}/{r}")) for r in here})
    return ast.literal_eval(store.compare_set(f"{number}/decided", "", mine).decode())


# %% right: arrivals are appended to one key
def quorum(store, number, me, step, expected, replicas, patience):
    store.append(f"asked {number}", f"{me}={step};")
    before = f"decision {number - 1}"
    least = max(json.loads(store.get(before)).values()) if store.check([before]) else -1
    started = time.monotonic()
    while True:
        if store.check([f"decision {number}"]):
            decision = json.loads(store.get(f"decision {number}"))
            return {int(replica): s for replica, s in decision.items()}
        pairs = [pair.split("=") for pair in store.get(f"asked {number}").decode().split(";")[:-1]]
        members = {int(replica): int(s) for replica, s in pairs}
        complete = all(replica in members for replica in expected)
        if (complete or time.monotonic() - started >= patience) and max(members.values()) >= least:
            store.compare_set(f"decision {number}", "", json.dumps(members))
        else:
            time.sleep(0.003)


# %% right: everybody gets a place by add, and writes itself there
def quorum(store, number, me, step, expected, replicas, patience):
    def load(key):
        return ast.literal_eval(store.get(key).decode())

    place = store.add(f"r{number}/count", 1)
    store.set(f"r{number}/place{place}", repr((me, step)))
    newest = -1
    if store.check([f"r{number - 1}/members"]):
        newest = max(load(f"r{number - 1}/members").values())
    deadline = time.monotonic() + patience
    while not store.check([f"r{number}/members"]):
        found = {}
        for k in range(1, store.add(f"r{number}/count", 0) + 1):
            if store.check([f"r{number}/place{k}"]):  # one may be killed between the two
                replica, its_step = load(f"r{number}/place{k}")
                found[replica] = its_step
        ready = set(expected).issubset(found) or time.monotonic() > deadline
        if ready and max(found.values()) >= newest:
            store.compare_set(f"r{number}/members", "", repr(found))
        time.sleep(0.002)
    return load(f"r{number}/members")


# %% right: one key holds who has asked and whether it is decided
def quorum(store, number, me, step, expected, replicas, patience):
    key, last = f"round-{number}", f"round-{number - 1}"

    def read(name):
        if not store.check([name]):
            return "", {"asked": {}, "decided": False}
        text = store.get(name).decode()
        return text, json.loads(text)

    _, before = read(last)
    newest = max(before["asked"].values(), default=-1) if before["decided"] else -1
    until = time.monotonic() + patience
    while True:
        old, now = read(key)
        if now["decided"]:
            return {int(r): s for r, s in now["asked"].items()}
        asked = {int(r): s for r, s in now["asked"].items()}
        fresh = {**asked, me: step}
        enough = set(expected) <= set(fresh) or time.monotonic() >= until
        decided = enough and max(fresh.values()) >= newest
        if fresh != asked or decided:
            store.compare_set(key, old, json.dumps({"asked": fresh, "decided": decided}))
        time.sleep(0.002)


# %% wrong: the first who asks decides for all | timed out | is: a replica that is relied on to decide
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    first = store.add(f"{number}/count", 1) == 1
    newest = -1
    if store.check([f"{number - 1}/decided"]):
        newest = max(ast.literal_eval(store.get(f"{number - 1}/decided").decode()).values())
    start = time.monotonic()
    while not store.check([f"{number}/decided"]):
        if first:
            here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
            mine = {r: int(store.get(f"{number}/{r}")) for r in here}
            if set(expected) <= set(here) or time.monotonic() - start > patience:
                if max(mine.values()) >= newest:
                    store.set(f"{number}/decided", repr(mine))
        time.sleep(0.005)
    return ast.literal_eval(store.get(f"{number}/decided").decode())


# %% wrong: the smallest number that is there decides | timed out | is: a replica that is relied on to decide
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    newest = -1
    if store.check([f"{number - 1}/decided"]):
        newest = max(ast.literal_eval(store.get(f"{number - 1}/decided").decode()).values())
    start = time.monotonic()
    while not store.check([f"{number}/decided"]):
        here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
        mine = {r: int(store.get(f"{number}/{r}")) for r in here}
        enough = set(expected) <= set(here) or time.monotonic() - start > patience
        if me == min(here) and enough and max(mine.values()) >= newest:
            store.compare_set(f"{number}/decided", "", repr(mine))
        time.sleep(0.005)
    return ast.literal_eval(store.get(f"{number}/decided").decode())


# %% wrong: newer than the last decision, not as new | timed out | is: a replica that is relied on to decide
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    newest = -2
    if store.check([f"{number - 1}/decided"]):
        newest = max(ast.literal_eval(store.get(f"{number - 1}/decided").decode()).values())
    give_up = time.monotonic() + patience
    while not store.check([f"{number}/decided"]):
        here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
        mine = {r: int(store.get(f"{number}/{r}")) for r in here}
        enough = set(expected) <= set(here) or time.monotonic() > give_up
        if enough and max(mine.values()) > newest:
            store.compare_set(f"{number}/decided", "", repr(mine))
        time.sleep(0.005)
    return ast.literal_eval(store.get(f"{number}/decided").decode())


# %% wrong: a majority as well | timed out | is: a replica that is relied on to decide
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    newest = -1
    if store.check([f"{number - 1}/decided"]):
        newest = max(ast.literal_eval(store.get(f"{number - 1}/decided").decode()).values())
    give_up = time.monotonic() + patience
    while not store.check([f"{number}/decided"]):
        here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
        mine = {r: int(store.get(f"{number}/{r}")) for r in here}
        enough = set(expected) <= set(here) or time.monotonic() > give_up
        if enough and max(mine.values()) >= newest and len(here) > replicas / 2:
            store.compare_set(f"{number}/decided", "", repr(mine))
        time.sleep(0.005)
    return ast.literal_eval(store.get(f"{number}/decided").decode())
