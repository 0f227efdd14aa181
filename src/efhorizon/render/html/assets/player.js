// Plays an optimal episode from its sprite sheet.
"use strict";
(function () {
  const FRAME_MILLISECONDS = 350;
  const calm = matchMedia("(prefers-reduced-motion: reduce)");

  for (const place of document.querySelectorAll(".episode")) start(place);

  function start(place) {
    const episode = JSON.parse(place.dataset.episode);
    const sheet = place.querySelector("img");
    const player = place.querySelector("template").content.cloneNode(true).querySelector(".player");
    const find = (name) => player.querySelector(`[data-part="${name}"]`);
    const canvas = player.querySelector("canvas");
    const [play, slider] = [find("play"), find("slider")];
    canvas.width = episode.width;
    canvas.height = episode.height;
    slider.max = String(episode.frames - 1);
    let frame = 0;
    let timer = null;

    function draw() {
      const x = (frame % episode.columns) * episode.width;
      const y = Math.floor(frame / episode.columns) * episode.height;
      const pen = canvas.getContext("2d");
      pen.clearRect(0, 0, canvas.width, canvas.height);
      pen.drawImage(sheet, x, y, episode.width, episode.height, 0, 0, episode.width, episode.height);
    }

    function show(wanted) {
      frame = Math.max(0, Math.min(episode.frames - 1, wanted));
      draw();
      slider.value = String(frame);
      const action = episode.actions[frame];
      const reward = episode.rewards[frame];
      const total = episode.rewards.slice(0, frame).reduce((sum, each) => sum + each, 0);
      find("time").textContent = `${frame} of ${episode.actions.length}`;
      find("action").textContent = action === undefined ? "the episode has ended" : action;
      find("reward").textContent = reward === undefined ? "–" : String(reward);
      find("return").textContent = String(Number(total.toPrecision(6)));
      slider.setAttribute("aria-valuetext", `time ${frame}, action ${find("action").textContent}`);
    }

    function stop() {
      clearInterval(timer);
      timer = null;
      play.textContent = "Play";
    }

    function run() {
      if (frame === episode.frames - 1) show(0);
      play.textContent = "Pause";
      timer = setInterval(function () {
        show(frame + 1);
        if (frame === episode.frames - 1) stop();
      }, FRAME_MILLISECONDS);
    }

    play.addEventListener("click", () => (timer === null ? run() : stop()));
    find("back").addEventListener("click", () => (stop(), show(frame - 1)));
    find("forward").addEventListener("click", () => (stop(), show(frame + 1)));
    slider.addEventListener("input", () => (stop(), show(Number(slider.value))));

    function begin() {
      sheet.closest("figure").replaceWith(player);
      show(0);
      // Plays by itself once it is seen, unless the reader prefers no motion.
      if (calm.matches) return;
      const watcher = new IntersectionObserver(function (entries) {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        watcher.disconnect();
        if (timer === null && frame === 0) run();
      }, { threshold: 0.6 });
      watcher.observe(canvas);
    }

    if (sheet.complete && sheet.naturalWidth) begin();
    else sheet.addEventListener("load", begin);
  }
})();
