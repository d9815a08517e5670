# %% right: a round, a group where one is needed, a step
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    number, step, log, members, expected = 0, 0, {}, None, range(replicas)
    while True:
        number += 1
        now = quorum(store, number, me, step, list(expected), replicas, patience)
        if me not in now:
            step, members, log = -1, None, {}
            continue
        expected = sorted(now)
        if min(now.values()) == steps:
            return log
        try:
            if members != expected or len(set(now.values())) > 1:
                members = None
                join(store, number, expected, me, patience)
                step = rejoin(
                    expected.index(me), len(now), [now[m] for m in expected], model, optimizer
                )
            members = expected
            if step == steps:
                continue
            backward(step)
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= len(members)
        except RuntimeError:
            members = None
            if dist.is_initialized():
                dist.destroy_process_group()
            continue
        optimizer.step()
        log[step] = members
        step += 1


# %% right: a new group in every round
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    number, step, log = 0, 0, {}
    members = list(range(replicas))
    while True:
        asked = quorum(store, number, me, step, members, replicas, patience)
        number += 1
        if me not in asked:
            step, log = -1, {}
            if all(s == steps for s in asked.values()):
                return log
            continue
        members = sorted(asked)
        if all(s == steps for s in asked.values()):
            return log
        try:
            join(store, number, members, me, patience)
            step = rejoin(
                dist.get_rank(), dist.get_world_size(), [asked[m] for m in members], model, optimizer
            )
            if step < steps:
                backward(step)
                flat = torch.cat([p.grad.flatten() for p in model.parameters()])
                dist.all_reduce(flat)
                flat /= len(members)
                parts = flat.split([p.numel() for p in model.parameters()])
                for p, part in zip(model.parameters(), parts):
                    p.grad.copy_(part.view_as(p))
        except RuntimeError:
            continue
        if step < steps:
            optimizer.step()
            log[step] = members
            step += 1


# %% wrong: a failure is not caught | crashed | is: a failure is not caught
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    log, number = {}, 0
    step, members = 0, list(range(replicas))
    while True:
        number += 1
        now = quorum(store, number, me, step, members, replicas, patience)
        if me not in now:
            step, log = -1, {}
            continue
        members = sorted(now)
        if min(now.values()) == steps:
            return log
        join(store, number, members, me, patience)
        step = rejoin(
            members.index(me), len(members), [now[m] for m in members], model, optimizer
        )
        if step == steps:
            continue
        backward(step)
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= len(members)
        optimizer.step()
        log[step] = members
        step += 1


# %% wrong: after a failure it steps with its own gradients | wrong | is: steps after a failed all_reduce
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    log, number = {}, 0
    step, members = 0, list(range(replicas))
    while True:
        number += 1
        now = quorum(store, number, me, step, members, replicas, patience)
        if me not in now:
            step, log = -1, {}
            continue
        members = sorted(now)
        if min(now.values()) == steps:
            return log
        try:
            join(store, number, members, me, patience)
            step = rejoin(
                members.index(me), len(members), [now[m] for m in members], model, optimizer
            )
            if step == steps:
                continue
            backward(step)
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= len(members)
        except RuntimeError:
            pass
        optimizer.step()
        log[step] = members
        step += 1


# %% wrong: divided by all replicas that there may be | wrong | is: divided by all replicas
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    number, step, log = 0, 0, {}
    members = list(range(replicas))
    while True:
        asked = quorum(store, number, me, step, members, replicas, patience)
        number += 1
        if me not in asked:
            step, log = -1, {}
            continue
        members = sorted(asked)
        if all(s == steps for s in asked.values()):
            return log
        try:
            join(store, number, members, me, patience)
            step = rejoin(
                members.index(me), len(members), [asked[m] for m in members], model, optimizer
            )
            if step == steps:
                continue
            backward(step)
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= replicas
        except RuntimeError:
            continue
        optimizer.step()
        log[step] = members
        step += 1


# %% wrong: nobody takes over | timed out | is: a replica waits forever
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    number, step, log = 0, 0, {}
    members = list(range(replicas))
    while True:
        asked = quorum(store, number, me, step, members, replicas, patience)
        number += 1
        if me not in asked:
            continue
        members = sorted(asked)
        if all(s == steps for s in asked.values()):
            return log
        try:
            join(store, number, members, me, patience)
            if step == steps:
                continue
            backward(step)
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= len(members)
        except RuntimeError:
            continue
        optimizer.step()
        log[step] = members
        step += 1


# %% wrong: it begins where the others are, with weights of its own | wrong | is: a replica joins with weights of its own
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    number, step, log = 0, 0, {}
    members = list(range(replicas))
    while True:
        asked = quorum(store, number, me, step, members, replicas, patience)
        number += 1
        if me not in asked:
            step, log = -1, {}
            continue
        members = sorted(asked)
        if all(s == steps for s in asked.values()):
            return log
        step = max(asked.values())
        try:
            join(store, number, members, me, patience)
            if step == steps:
                continue
            backward(step)
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= len(members)
        except RuntimeError:
            continue
        optimizer.step()
        log[step] = members
        step += 1


# %% wrong: the dead one is left out, and never a new one let in | wrong | is: a replica that was left out keeps its dict or its step
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    number, step, log = 0, 0, {}
    members = list(range(replicas))
    while True:
        asked = quorum(store, number, me, step, members, replicas, patience)
        number += 1
        if me not in asked:
            return log
        members = sorted(asked)
        if all(s == steps for s in asked.values()):
            return log
        try:
            join(store, number, members, me, patience)
            step = rejoin(
                members.index(me), len(members), [asked[m] for m in members], model, optimizer
            )
            if step == steps:
                continue
            backward(step)
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= len(members)
        except RuntimeError:
            continue
        optimizer.step()
        log[step] = members
        step += 1


# %% wrong: it returns how many steps it has done | wrong | is: not a dict of lists
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    number, step = 0, 0
    members = list(range(replicas))
    while True:
        asked = quorum(store, number, me, step, members, replicas, patience)
        number += 1
        if me not in asked:
            step, log = -1, {}
            continue
        members = sorted(asked)
        if all(s == steps for s in asked.values()):
            return step
        try:
            join(store, number, members, me, patience)
            step = rejoin(
                members.index(me), len(members), [asked[m] for m in members], model, optimizer
            )
            if step == steps:
                continue
            backward(step)
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= len(members)
        except RuntimeError:
            continue
        optimizer.step()
        step += 1


# %% wrong: who is left out keeps its step | wrong | is: a replica that was left out keeps its dict or its step
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    number, step, log, met, expected = 0, 0, {}, None, list(range(replicas))
    while True:
        number += 1
        now = quorum(store, number, me, step, expected, replicas, patience)
        if me not in now:
            met = None
            continue
        expected = sorted(now)
        if min(now.values()) == steps:
            return log
        try:
            if met != expected or len(set(now.values())) > 1:
                met = None
                join(store, number, expected, me, patience)
                done = [now[r] for r in expected]
                step = rejoin(dist.get_rank(), len(done), done, model, optimizer)
                met = expected
            if step == steps:
                continue
            backward(step)
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= len(met)
        except RuntimeError:
            met = None
            if dist.is_initialized():
                dist.destroy_process_group()
            continue
        optimizer.step()
        log[step] = expected
        step += 1


# %% wrong: who is done leaves | wrong | is: a replica that is done leaves
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    number, step, log, met, expected = 0, 0, {}, None, list(range(replicas))
    while True:
        number += 1
        if step == steps:
            return log
        now = quorum(store, number, me, step, expected, replicas, patience)
        if me not in now:
            step, met, log = -1, None, {}
            continue
        expected = sorted(now)
        if min(now.values()) == steps:
            return log
        try:
            if met != expected or len(set(now.values())) > 1:
                met = None
                join(store, number, expected, me, patience)
                done = [now[r] for r in expected]
                step = rejoin(dist.get_rank(), len(done), done, model, optimizer)
                met = expected
            if step == steps:
                continue
            backward(step)
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= len(met)
        except RuntimeError:
            met = None
            if dist.is_initialized():
                dist.destroy_process_group()
            continue
        optimizer.step()
        log[step] = expected
        step += 1


# %% wrong: a new group only for new members | timed out | is: a replica waits forever
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    number, step, log, met, expected = 0, 0, {}, None, list(range(replicas))
    while True:
        number += 1
        now = quorum(store, number, me, step, expected, replicas, patience)
        if me not in now:
            step, met, log = -1, None, {}
            continue
        expected = sorted(now)
        if min(now.values()) == steps:
            return log
        try:
            if met != expected:
                met = None
                join(store, number, expected, me, patience)
                done = [now[r] for r in expected]
                step = rejoin(dist.get_rank(), len(done), done, model, optimizer)
                met = expected
            if step == steps:
                continue
            backward(step)
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= len(met)
        except RuntimeError:
            continue
        optimizer.step()
        log[step] = expected
        step += 1


# %% wrong: join without patience | wrong | is: join without patience
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    number, step, log, met, expected = 0, 0, {}, None, list(range(replicas))
    while True:
        number += 1
        now = quorum(store, number, me, step, expected, replicas, patience)
        if me not in now:
            step, met, log = -1, None, {}
            continue
        expected = sorted(now)
        if min(now.values()) == steps:
            return log
        try:
            if met != expected or len(set(now.values())) > 1:
                met = None
                join(store, number, expected, me, 30.0)
                done = [now[r] for r in expected]
                step = rejoin(dist.get_rank(), len(done), done, model, optimizer)
                met = expected
            if step == steps:
                continue
            backward(step)
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= len(met)
        except RuntimeError:
            met = None
            if dist.is_initialized():
                dist.destroy_process_group()
            continue
        optimizer.step()
        log[step] = expected
        step += 1


# %% wrong: join stands outside of the try | crashed | is: a failure is not caught
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    number, step, log, met, expected = 0, 0, {}, None, list(range(replicas))
    while True:
        number += 1
        now = quorum(store, number, me, step, expected, replicas, patience)
        if me not in now:
            step, met, log = -1, None, {}
            continue
        expected = sorted(now)
        if min(now.values()) == steps:
            return log
        if met != expected or len(set(now.values())) > 1:
            met = None
            join(store, number, expected, me, patience)
            done = [now[r] for r in expected]
            step = rejoin(dist.get_rank(), len(done), done, model, optimizer)
            met = expected
        try:
            if step == steps:
                continue
            backward(step)
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= len(met)
        except RuntimeError:
            met = None
            if dist.is_initialized():
                dist.destroy_process_group()
            continue
        optimizer.step()
        log[step] = expected
        step += 1


# %% wrong: all are expected for ever | too slow | is: dead replicas are expected forever
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    number, step, log, met, expected = 0, 0, {}, None, list(range(replicas))
    while True:
        number += 1
        now = quorum(store, number, me, step, list(range(replicas)), replicas, patience)
        if me not in now:
            step, met, log = -1, None, {}
            continue
        expected = sorted(now)
        if min(now.values()) == steps:
            return log
        try:
            if met != expected or len(set(now.values())) > 1:
                met = None
                join(store, number, expected, me, patience)
                done = [now[r] for r in expected]
                step = rejoin(dist.get_rank(), len(done), done, model, optimizer)
                met = expected
            if step == steps:
                continue
            backward(step)
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= len(met)
        except RuntimeError:
            met = None
            if dist.is_initialized():
                dist.destroy_process_group()
            continue
        optimizer.step()
        log[step] = expected
        step += 1


# %% wrong: who is left out begins at step 0 | wrong | is: a replica joins with weights of its own
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    number, step, log = 0, 0, {}
    members = list(range(replicas))
    while True:
        number += 1
        now = quorum(store, number, me, step, members, replicas, patience)
        if me not in now:
            step, log = 0, {}
            continue
        members = sorted(now)
        if min(now.values()) == steps:
            return log
        try:
            join(store, number, members, me, patience)
            step = rejoin(
                members.index(me), len(members), [now[m] for m in members], model, optimizer
            )
            if step == steps:
                continue
            backward(step)
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= len(members)
        except RuntimeError:
            continue
        optimizer.step()
        log[step] = members
        step += 1


# %% right: all gradients in flight at once, then waited for
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    trained, done, current, crowd, k = {}, 0, None, list(range(replicas)), 0
    while True:
        answer = quorum(store, k, me, done, crowd, replicas, patience)
        k += 1
        if set(answer.values()) == {steps}:
            return trained if me in answer else {}
        if me not in answer:
            done, current, trained = -1, None, {}
            continue
        crowd = sorted(answer)
        try:
            if current != crowd or len({*answer.values()}) != 1:
                current = None
                join(store, k, crowd, me, patience)
                done = rejoin(crowd.index(me), len(crowd), [answer[c] for c in crowd], model, optimizer)
                current = list(crowd)
            if done < steps:
                backward(done)
                works = [dist.all_reduce(p.grad, async_op=True) for p in model.parameters()]
                for work in works:
                    work.wait()
        except RuntimeError:
            current = None
            if dist.is_initialized():
                dist.destroy_process_group()
            continue
        if done < steps:
            for p in model.parameters():
                p.grad.div_(len(crowd))
            optimizer.step()
            trained[done] = current
            done += 1


# %% right: gathers the gradients and averages them
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    number, step, log, members = 0, 0, {}, list(range(replicas))
    group_of = None
    while True:
        number += 1
        now = quorum(store, number, me, step, members, replicas, patience)
        everybody_is_done = min(now.values()) == steps
        if me not in now:
            if everybody_is_done:
                return {}
            step, log, group_of = -1, {}, None
            continue
        if everybody_is_done:
            return log
        members = sorted(now)
        try:
            if group_of != members or min(now.values()) != max(now.values()):
                group_of = None
                join(store, number, members, me, patience)
                step = rejoin(
                    dist.get_rank(), dist.get_world_size(), [now[m] for m in members], model, optimizer
                )
                group_of = members
            if step == steps:
                continue
            backward(step)
            mine = torch.cat([p.grad.flatten() for p in model.parameters()])
            theirs = [torch.empty_like(mine) for _ in members]
            dist.all_gather(theirs, mine)
        except RuntimeError:
            group_of = None
            if dist.is_initialized():
                dist.destroy_process_group()
            continue
        mean = torch.stack(theirs).mean(0)
        at = 0
        for p in model.parameters():
            p.grad.copy_(mean[at : at + p.numel()].view_as(p))
            at += p.numel()
        optimizer.step()
        log[step] = members
        step += 1


# %% wrong: a round has a new number only after a step | timed out | is: a replica waits forever
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    number, step, log, met, expected = 1, 0, {}, None, list(range(replicas))
    while True:
        now = quorum(store, number, me, step, expected, replicas, patience)
        if me not in now:
            step, met, log = -1, None, {}
            number += 1
            if min(now.values()) == steps:
                return log
            continue
        expected = sorted(now)
        if min(now.values()) == steps:
            return log
        try:
            if met != expected or len(set(now.values())) > 1:
                met = None
                join(store, number, expected, me, patience)
                step = rejoin(dist.get_rank(), len(now), [now[m] for m in expected], model, optimizer)
                met = expected
            if step < steps:
                backward(step)
                for p in model.parameters():
                    dist.all_reduce(p.grad)
                    p.grad /= len(met)
        except RuntimeError:
            met = None
            if dist.is_initialized():
                dist.destroy_process_group()
            continue
        number += 1
        if step < steps:
            optimizer.step()
            log[step] = expected
            step += 1


# %% wrong: it catches DistBackendError alone | crashed | is: a failure is not caught
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    number, step, log, met, expected = 0, 0, {}, None, list(range(replicas))
    while True:
        number += 1
        now = quorum(store, number, me, step, expected, replicas, patience)
        if me not in now:
            step, met, log = -1, None, {}
            if min(now.values()) == steps:
                return log
            continue
        expected = sorted(now)
        if min(now.values()) == steps:
            return log
        try:
            if met != expected or len(set(now.values())) > 1:
                met = None
                join(store, number, expected, me, patience)
                step = rejoin(dist.get_rank(), len(now), [now[m] for m in expected], model, optimizer)
                met = expected
            if step == steps:
                continue
            backward(step)
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= len(met)
        except dist.DistBackendError:
            met = None
            if dist.is_initialized():
                dist.destroy_process_group()
            continue
        optimizer.step()
        log[step] = expected
        step += 1


# %% wrong: a barrier after the step, whose failure undoes nothing | wrong | is: a step is made twice
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    number, step, log, met, expected = 0, 0, {}, None, list(range(replicas))
    while True:
        number += 1
        now = quorum(store, number, me, step, expected, replicas, patience)
        if me not in now:
            step, met, log = -1, None, {}
            if min(now.values()) == steps:
                return log
            continue
        expected = sorted(now)
        if min(now.values()) == steps:
            return log
        try:
            if met != expected or len(set(now.values())) > 1:
                met = None
                join(store, number, expected, me, patience)
                step = rejoin(dist.get_rank(), len(now), [now[m] for m in expected], model, optimizer)
                met = expected
            if step == steps:
                continue
            backward(step)
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= len(met)
            optimizer.step()
            dist.barrier()
            log[step] = expected
            step += 1
        except RuntimeError:
            met = None
            if dist.is_initialized():
                dist.destroy_process_group()


# %% wrong: what was logged before it was left out stays | wrong | is: a replica that was left out keeps its dict or its step
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    number, step, log, met, expected = 0, 0, {}, None, list(range(replicas))
    while True:
        number += 1
        now = quorum(store, number, me, step, expected, replicas, patience)
        if me not in now:
            step, met = -1, None
            if min(now.values()) == steps:
                return log
            continue
        expected = sorted(now)
        if min(now.values()) == steps:
            return log
        try:
            if met != expected or len(set(now.values())) > 1:
                met = None
                join(store, number, expected, me, patience)
                step = rejoin(dist.get_rank(), len(now), [now[m] for m in expected], model, optimizer)
                met = expected
            if step == steps:
                continue
            backward(step)
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= len(met)
        except RuntimeError:
            met = None
            if dist.is_initialized():
                dist.destroy_process_group()
            continue
        optimizer.step()
        log[step] = expected
        step += 1


# %% wrong: the same members need no new group | wrong | is: a step is not copied
def shrink_and_go_on(store, me, replicas, model, optimizer, backward, steps, patience):
    number, step, log, met, expected = 0, 0, {}, None, list(range(replicas))
    while True:
        number += 1
        now = quorum(store, number, me, step, expected, replicas, patience)
        if me not in now:
            step, met, log = -1, None, {}
            if min(now.values()) == steps:
                return log
            continue
        expected = sorted(now)
        if min(now.values()) == steps:
            return log
        try:
            if met != expected:
                met = None
                join(store, number, expected, me, patience)
                done = [now[r] for r in expected]
                step = rejoin(dist.get_rank(), len(done), done, model, optimizer)
                met = expected
            if step == steps:
                continue
            backward(step)
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= len(met)
        except RuntimeError:
            met = None
            if dist.is_initialized():
                dist.destroy_process_group()
            continue
        optimizer.step()
        log[step] = expected
        step += 1
