import { useState } from 'react'
import { formatOffset } from '../domain/format.ts'
import { chooseZone, useZone, zones } from './time.ts'

const themes = ['auto', 'light', 'dark'] as const
type Theme = (typeof themes)[number]

const key = 'nightshift.theme'

function getTheme(): Theme {
  const stored = localStorage.getItem(key)
  return stored === 'light' || stored === 'dark' ? stored : 'auto'
}

/** `auto` follows the system; the other two stand on the root for the style sheet to read. */
export function applyTheme(chosen: Theme = getTheme()): void {
  if (chosen === 'auto') {
    localStorage.removeItem(key)
    delete document.documentElement.dataset.theme
  } else {
    localStorage.setItem(key, chosen)
    document.documentElement.dataset.theme = chosen
  }
}

export function ThemeSwitch() {
  const [chosen, choose] = useState(getTheme)
  return (
    <fieldset className="switch">
      <legend className="visually-hidden">Colours</legend>
      {themes.map((each) => (
        <button
          type="button"
          key={each}
          aria-pressed={each === chosen}
          onClick={() => {
            applyTheme(each)
            choose(each)
          }}
        >
          {each}
        </button>
      ))}
    </fieldset>
  )
}

export function ZoneSwitch() {
  const chosen = useZone()
  return (
    <fieldset className="switch">
      <legend className="visually-hidden">Times</legend>
      {zones.map((each) => (
        <button
          type="button"
          key={each}
          aria-pressed={each === chosen}
          title={
            each === 'utc' ? 'Times in UTC' : `Times in your own zone, ${formatOffset(new Date().toISOString(), each)}`
          }
          onClick={() => chooseZone(each)}
        >
          {each === 'utc' ? 'UTC' : 'local'}
        </button>
      ))}
    </fieldset>
  )
}
