export const themes = ['auto', 'light', 'dark'] as const
type Theme = (typeof themes)[number]

const key = 'nightshift.theme'

export function getTheme(): Theme {
  const stored = localStorage.getItem(key)
  return stored === 'light' || stored === 'dark' ? stored : 'auto'
}

/**
 * Stores the theme. `auto` follows the system; the other two themes are set on the root for the
 * style sheet.
 */
export function chooseTheme(chosen: Theme): void {
  if (chosen === 'auto') {
    localStorage.removeItem(key)
    delete document.documentElement.dataset.theme
  } else {
    localStorage.setItem(key, chosen)
    document.documentElement.dataset.theme = chosen
  }
}
