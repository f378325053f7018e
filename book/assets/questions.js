// Keeps the choices of the self-test on the reader's own computer and counts
// them. Choosing and unfolding work without it.
const tally = document.querySelector(".book-tally");
const questions = [...document.querySelectorAll(".book-question")];
const place = `attnbook.questions.${document.documentElement.lang}`;

const load = () => {
  try {
    return JSON.parse(localStorage.getItem(place)) ?? {};
  } catch {
    return {}; // no storage, or not ours
  }
};
// By the answer's number: {first, now}. An answer that is no longer there is let go.
let choices = load();

const save = () => {
  try {
    localStorage.setItem(place, JSON.stringify(choices));
  } catch { /* no storage: it still works, until the page is left */ }
};

const answersOf = (question) => [...question.querySelectorAll(".book-answer")];

const count = () => {
  const chosen = questions.filter((question) => choices[question.dataset.question]);
  const right = chosen.filter((question) => {
    const { first } = choices[question.dataset.question];
    return answersOf(question)[first]?.hasAttribute("data-right");
  });
  const values = { answered: chosen.length, all: questions.length, right: right.length };
  const text = tally.dataset.tally.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  tally.querySelector("span").textContent = text;
  tally.hidden = chosen.length === 0;
};

const show = () => {
  for (const question of questions) {
    const { now } = choices[question.dataset.question] ?? {};
    answersOf(question).forEach((answer, index) => {
      answer.querySelector("input").checked = index === now;
    });
    question.querySelector(".book-show").checked = false;
  }
  count();
};

if (tally && questions.length) {
  const text = document.createElement("span");
  const again = document.createElement("button");
  again.type = "button";
  again.textContent = tally.dataset.again;
  again.addEventListener("click", () => {
    choices = {};
    save();
    show();
    questions[0].querySelector("input").focus();
  });
  tally.append(text, " ", again);
  for (const question of questions) {
    question.addEventListener("change", ({ target }) => {
      if (target.type !== "radio") return;
      const now = answersOf(question).findIndex((answer) => answer.contains(target));
      const name = question.dataset.question;
      choices[name] = { first: choices[name]?.first ?? now, now };
      save();
      count();
    });
  }
  show();
}
