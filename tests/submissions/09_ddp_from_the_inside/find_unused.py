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
