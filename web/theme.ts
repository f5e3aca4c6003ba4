export const themes = ['auto', 'light', 'dark'] as const
type Theme = (typeof themes)[number]

const key = 'nightshift.theme'

export function theme(): Theme {
  const kept = localStorage.getItem(key)
  return kept === 'light' || kept === 'dark' ? kept : 'auto'
}

/** `auto` follows the system; the other two stand on the root for the style sheet to read. */
export function applyTheme(chosen: Theme = theme()): void {
  if (chosen === 'auto') {
    localStorage.removeItem(key)
    delete document.documentElement.dataset.theme
  } else {
    localStorage.setItem(key, chosen)
    document.documentElement.dataset.theme = chosen
  }
}
