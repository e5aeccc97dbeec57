/**
 * Before anything is painted: scripts run, and the theme of the site that this page is a part of, whenever it changes.
 *
 * The page says in `data-theme-key` where the site keeps it.  Without that, or where nothing can be kept, the page has
 * the theme of the reader's system.
 */
(() => {
  const page = document.documentElement;
  page.classList.add("scripted");
  const { themeKey } = page.dataset;
  const follow = () => {
    try {
      const theme = localStorage.getItem(themeKey);
      if (["light", "dark"].includes(theme)) page.dataset.theme = theme;
      else delete page.dataset.theme;
    } catch {
      // A page in a sandbox may not ask.
    }
  };
  if (!themeKey) return;
  follow();
  addEventListener("storage", follow);
})();
