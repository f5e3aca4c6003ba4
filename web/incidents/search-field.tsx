import { type RefObject, useEffect, useState } from 'react'
import { go, type Place, withSearch } from '../router.tsx'

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
