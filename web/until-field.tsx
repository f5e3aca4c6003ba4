import { bothMoments } from './time.ts'

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
