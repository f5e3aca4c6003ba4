import { type RefObject, useEffect, useState } from 'react'
import { go, type Place, withSearch } from './router.tsx'
import { bothMoments } from './time.ts'

/** Why, in a person's words: asked for wherever a change leaves a row that others will read. */
export function ReasonField({
  id,
  label,
  value,
  onChange,
}: {
  id: string
  label: string
  value: string
  onChange(value: string): void
}) {
  return (
    <>
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="text"
        required
        minLength={3}
        maxLength={500}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </>
  )
}

const hour = 3_600_000
const offers: [string, number][] = [
  ['4 hours', 4 * hour],
  ['a day', 24 * hour],
  ['a week', 7 * 24 * hour],
]

/** A moment ahead, as the browser asks for one: in the person's own time, with what that is in UTC. */
export function UntilField({
  id,
  label,
  value,
  required,
  onChange,
}: {
  id: string
  label: string
  value: string
  required: boolean
  onChange(value: string): void
}) {
  const chosen = isoOf(value)
  return (
    <div className="stack tight">
      <label htmlFor={id}>{label}</label>
      <div className="row">
        <input
          id={id}
          type="datetime-local"
          required={required}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
        {offers.map(([word, ms]) => (
          <button type="button" key={word} onClick={() => onChange(localText(new Date(Date.now() + ms)))}>
            {word}
          </button>
        ))}
      </div>
      <span className="soft small">{chosen ? bothMoments(chosen) : 'In your own time.'}</span>
    </div>
  )
}

/** What was chosen as the API takes it; null where nothing was, or half of it. */
export function isoOf(value: string): string | null {
  const at = new Date(value)
  return value === '' || Number.isNaN(at.getTime()) ? null : at.toISOString()
}

function localText(at: Date): string {
  const two = (number: number) => String(number).padStart(2, '0')
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
  return `${day}T${two(at.getHours())}:${two(at.getMinutes())}`
}

/** A search follows the typing, a moment behind. */
const typingMs = 250

/** A search that lives in the address as `q`. */
export function SearchField({
  place,
  field,
  label,
}: {
  place: Place
  field: RefObject<HTMLInputElement | null>
  label: string
}) {
  const inAddress = place.search.get('q') ?? ''
  const [text, setText] = useState(inAddress)
  // The address changed by itself, as by going back: the field follows.
  useEffect(() => setText(inAddress), [inAddress])
  // biome-ignore lint/correctness/useExhaustiveDependencies: waits for the typing alone, not for the address it leads to
  useEffect(() => {
    if (text.trim() === inAddress) return
    const timer = setTimeout(() => go(withSearch(place, { q: text.trim(), cursor: null }), { replace: true }), typingMs)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <input
      ref={field}
      type="search"
      aria-label={label}
      placeholder={label}
      value={text}
      maxLength={200}
      onChange={(event) => setText(event.target.value)}
    />
  )
}
