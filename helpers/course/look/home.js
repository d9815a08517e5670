// The map of the course, drawn again from the server while it is on screen.

const EVERY_MS = 3000;

/** Keep the map in `place` as it is on JupyterLab's server. In a page without that server, the map stays
as it was. */ export default function show(place) {
  const settings = document.getElementById("jupyter-config-data");
  const address = settings && JSON.parse(settings.textContent).realRanksMap;
  if (!address) return;

  // JupyterLab makes these links open notebooks in its own window. So a click on a link of a newer map
  // clicks the old link.
  const links = new Map([...place.querySelectorAll("a")].map((link) => [link.dataset.to, link]));
  let timer, shown;

  function draw(map) {
    const focused = place.contains(document.activeElement) && document.activeElement.dataset.to;
    const wasOpen = place.querySelector("details")?.open;
    place.innerHTML = map;
    if (wasOpen) place.querySelector("details").open = true;
    for (const link of place.querySelectorAll("a")) {
      const first = links.get(link.dataset.to);
      if (first) link.onclick = (event) => (event.preventDefault(), first.click());
      if (link.dataset.to === focused) link.focus({ preventScroll: true });
    }
    for (const button of place.querySelectorAll("button[data-path]")) {
      button.hidden = false;
      button.onclick = () => choose(button.dataset.path);
    }
  }

  async function choose(path) {
    const [, token] = document.cookie.match(/(?:^|; )_xsrf=([^;]*)/) ?? [];
    const answer = await fetch(address, {
      method: "POST",
      headers: token ? { "X-XSRFToken": token } : {},
      body: path,
    });
    if (answer.ok) draw((shown = await answer.text()));
  }

  async function refresh() {
    if (document.hidden) return;
    try {
      const answer = await fetch(address);
      if (!answer.ok) return clearInterval(timer); // signed out
      const map = await answer.text();
      if (map !== shown) draw((shown = map));
    } catch {
      // The server is unreachable, but may be back at the next attempt.
    }
  }

  // Also called when the map is scrolled away, its tab is covered or its output is replaced.
  new IntersectionObserver((seen) => {
    clearInterval(timer);
    if (!seen.at(-1).isIntersecting) return;
    refresh();
    timer = setInterval(refresh, EVERY_MS);
  }).observe(place);
}
