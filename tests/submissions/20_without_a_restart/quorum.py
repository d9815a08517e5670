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


# %% wrong: one that has nothing decides alone | wrong | says: the decision of round `number` - 1
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


# %% wrong: the patience starts again whenever another one comes | too slow | says: does not start again when another one comes
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


# %% wrong: it writes past the store that it is given, and is never killed | wrong | says: was set past the store
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


# %% wrong: each decides by itself | wrong | says: [Ll]et one proposal count
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    give_up = time.monotonic() + patience
    while time.monotonic() < give_up:
        if all(store.check([f"{number}/{r}"]) for r in expected):
            break
        time.sleep(0.01)
    here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
    return {r: int(store.get(f"{number}/{r}")) for r in here}


# %% wrong: replica 0 decides | crashed | says: `store.check\(\[key\]\)` asks without waiting
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


# %% wrong: it waits for all of them | crashed | says: `store.check\(\[key\]\)` asks without waiting
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    mine = repr({r: int(store.get(f"{number}/{r}")) for r in expected})
    return ast.literal_eval(store.compare_set(f"{number}/decided", "", mine).decode())


# %% wrong: it always waits as long as it may | too slow | says: although all are there
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    time.sleep(patience)
    here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
    mine = repr({r: int(store.get(f"{number}/{r}")) for r in here})
    return ast.literal_eval(store.compare_set(f"{number}/decided", "", mine).decode())


# %% wrong: it does not wait | wrong | says: look until all `expected` are there|wait `patience` seconds for them
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    here = [r for r in range(replicas) if store.check([f"{number}/{r}"])]
    mine = repr({r: int(store.get(f"{number}/{r}")) for r in here})
    return ast.literal_eval(store.compare_set(f"{number}/decided", "", mine).decode())


# %% wrong: only those who are expected | wrong | says: expected or not: look at all
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


# %% wrong: keys without the round | wrong | says: which asked with step|which did not ask
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


# %% wrong: check, then set: two may do so at once | wrong | says: Let one proposal count
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


# %% wrong: the members' numbers as texts | wrong | says: a dict of other things than ints
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


# %% wrong: a list of members | wrong | says: is given back a list, not a dict of ints
def quorum(store, number, me, step, expected, replicas, patience):
    store.set(f"{number}/{me}", str(step))
    give_up = time.monotonic() + patience
    while not store.check([f"{number}/decided"]) and time.monotonic() < give_up:
        if all(store.check([f"{number}/{r}"]) for r in expected):
            break
        time.sleep(0.01)
    mine = repr([r for r in range(replicas) if store.check([f"{number}/{r}"])])
    return ast.literal_eval(store.compare_set(f"{number}/decided", "", mine).decode())


# %% wrong: waits with the store's own wait, one after the other | too slow | says: after `patience` seconds the others must decide
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


# %% wrong: it waits for all that there may be | too slow | says: although all are there
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


# %% wrong: whoever counts first decides, and may be killed before it has | crashed | says: also one that you count on to decide|asks without waiting
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


# %% wrong: no look at the decision while it waits | too slow | says: look also whether the round has been decided
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


# %% wrong: a leader, whom the others poll | timed out | says: also one that you rely on to decide
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


# %% wrong: as many as are expected, whoever they are | wrong | says: Somebody of `expected` was missing
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


# %% wrong: patience for each that is missing | too slow | says: The time runs from when a replica asks|after `patience` seconds the others decide
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
