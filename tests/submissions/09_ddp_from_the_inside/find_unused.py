# %% right: a list to visit and a set of seen
def find_unused(output, module):
    todo, seen, used = [output.grad_fn], set(), set()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            used.add(node.variable)
        todo += [following for following, _ in node.next_functions]
    return [n for n, p in module.named_parameters() if p.requires_grad and p not in used]


# %% right: breadth first, ids
from collections import deque


def find_unused(output: torch.Tensor, module: torch.nn.Module) -> list[str]:
    queue = deque([output.grad_fn] if output.grad_fn is not None else [])
    seen, reached = set(queue), set()
    while queue:
        node = queue.popleft()
        variable = getattr(node, "variable", None)
        if variable is not None:
            reached.add(id(variable))
        for child, _ in node.next_functions:
            if child is not None and child not in seen:
                seen.add(child)
                queue.append(child)
    names = []
    for name, p in module.named_parameters():
        if p.requires_grad and id(p) not in reached:
            names.append(name)
    return names


# %% right: generations of nodes
def find_unused(output, module):
    generation, seen = {output.grad_fn} - {None}, set()
    while generation:
        seen |= generation
        generation = {n for node in generation for n, _ in node.next_functions} - seen - {None}
    used = {id(node.variable) for node in seen if type(node).__name__ == "AccumulateGrad"}
    trained = {n: p for n, p in module.named_parameters() if p.requires_grad}
    return list(filter(lambda n: id(trained[n]) not in used, trained))


# %% wrong: runs backward and looks who has a gradient | wrong | says: nothing needs to be computed
def find_unused(output, module):
    output.sum().backward(retain_graph=True)
    return [n for n, p in module.named_parameters() if p.requires_grad and p.grad is None]


# %% wrong: asks autograd.grad | wrong | says: nothing needs to be computed
def find_unused(output, module):
    trained = {n: p for n, p in module.named_parameters() if p.requires_grad}
    grads = torch.autograd.grad(
        output.sum(), list(trained.values()), retain_graph=True, allow_unused=True
    )
    return [n for n, g in zip(trained, grads) if g is None]


# %% wrong: looks at p.grad without a backward | wrong | says: Reached are those parameters
def find_unused(output, module):
    return [n for n, p in module.named_parameters() if p.requires_grad and p.grad is None]


# %% wrong: calls itself | crashed | says: deeper than Python's recursion goes
def find_unused(output, module):
    seen, used = set(), set()

    def visit(node):
        if node is None or node in seen:
            return
        seen.add(node)
        if hasattr(node, "variable"):
            used.add(node.variable)
        for following, _ in node.next_functions:
            visit(following)

    visit(output.grad_fn)
    return [n for n, p in module.named_parameters() if p.requires_grad and p not in used]


# %% wrong: visits every path | timed out | says: visit each once
def find_unused(output, module):
    todo, used = [output.grad_fn], set()
    while todo:
        node = todo.pop()
        if node is None:
            continue
        if hasattr(node, "variable"):
            used.add(id(node.variable))
        todo += [following for following, _ in node.next_functions]
    return [n for n, p in module.named_parameters() if p.requires_grad and id(p) not in used]


# %% wrong: None among next_functions | crashed | says: None where an input needs no gradient
def find_unused(output, module):
    todo, seen, used = [output.grad_fn], set(), set()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            used.add(node.variable)
        todo += [following for following, _ in node.next_functions]
    return [n for n, p in module.named_parameters() if p.requires_grad and p not in used]


# %% wrong: frozen ones too | wrong | says: Only parameters with requires_grad=True are meant
def find_unused(output, module):
    todo, seen, used = [output.grad_fn], set(), set()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            used.add(node.variable)
        todo += [following for following, _ in node.next_functions]
    return [n for n, p in module.named_parameters() if p not in used]


# %% wrong: parameters, not their names | wrong | says: Give the names back by `return`, as a list
def find_unused(output, module):
    todo, seen, used = [output.grad_fn], set(), set()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            used.add(node.variable)
        todo += [following for following, _ in node.next_functions]
    return [p for p in module.parameters() if p.requires_grad and p not in used]


# %% right: a generator walks, a dict keeps the order
def _nodes(node):
    todo, seen = [node] if node is not None else [], {node}
    while todo:
        here = todo.pop(0)
        yield here
        fresh = dict.fromkeys(n for n, _ in here.next_functions if n is not None and n not in seen)
        seen.update(fresh)
        todo.extend(fresh)


def find_unused(output, module):
    left = {id(p): name for name, p in module.named_parameters() if p.requires_grad}
    for node in _nodes(output.grad_fn):
        left.pop(id(getattr(node, "variable", None)), None)
    return [*left.values()]


# %% right: the order of the names looked up at the end
def find_unused(output, module):
    stack, seen, reached = [output.grad_fn], {None}, []
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            reached += [node.variable] if hasattr(node, "variable") else []
            stack.extend(n for n, _ in node.next_functions)
    ids = list(map(id, reached))
    return [name for name, p in module.named_parameters() if id(p) not in ids and p.requires_grad]


# %% wrong: the used ones | wrong | says: the others are wanted
def find_unused(output, module):
    todo, seen, used = [output.grad_fn], {None}, set()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            used.add(node.variable)
        todo += [following for following, _ in node.next_functions]
    return [n for n, p in module.named_parameters() if p.requires_grad and p in used]


# %% wrong: a shared weight under both names, sorted | wrong | says: each is wanted once, in the order
def find_unused(output, module):
    todo, seen, used = [output.grad_fn], {None}, set()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            used.add(node.variable)
        todo += [following for following, _ in node.next_functions]
    return sorted(
        (n for n, p in module.named_parameters() if p.requires_grad and p not in used), reverse=True
    )


# %% wrong: prints | wrong | says: It returns nothing: a list of names
def find_unused(output, module):
    todo, seen, used = [output.grad_fn], {None}, set()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            used.add(node.variable)
        todo += [following for following, _ in node.next_functions]
    print([n for n, p in module.named_parameters() if p.requires_grad and p not in used])


# %% wrong: follows the last input of each function only | wrong | says: names:
def find_unused(output, module):
    node, used = output.grad_fn, set()
    while node is not None:
        if hasattr(node, "variable"):
            used.add(node.variable)
        followers = [n for n, _ in node.next_functions if n is not None]
        node = followers[-1] if followers else None
    return [n for n, p in module.named_parameters() if p.requires_grad and p not in used]


# %% wrong: clears the gradients first, then runs backward | wrong | says: nothing needs to be computed
def find_unused(output, module):
    module.zero_grad()
    if output.grad_fn is not None:
        output.sum().backward(retain_graph=True)
    return [n for n, p in module.named_parameters() if p.requires_grad and p.grad is None]
