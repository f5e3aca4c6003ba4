import { ChevronDown } from 'lucide-react'
import {
  type InputHTMLAttributes,
  type ReactNode,
  type RefObject,
  type TextareaHTMLAttributes,
  useEffect,
  useState,
} from 'react'
import { Dropdown } from './dropdown.tsx'
import { navigate, type PageLocation, withSearch } from './router.tsx'
import { formatBothZones } from './time.ts'

const prefix = 'draft '

/**
 * Keeps a person's unsent text in this tab, even if the page reloads or crashes, until it is sent
 * or the person signs out.
 */
export function useDraft(name: string): [text: string, write: (text: string) => void] {
  const [text, setText] = useState(() => read(name))
  const write = (next: string) => {
    setText(next)
    keep(name, next)
  }
  return [text, write]
}

/**
 * Deletes drafts that were sent, so that the next person in this tab does not see them (empty `id`:
 * all drafts).
 */
export function forgetDrafts(id = ''): void {
  try {
    const drafts = Object.keys(sessionStorage).filter((key) => key.startsWith(prefix) && key.endsWith(id))
    for (const key of drafts) sessionStorage.removeItem(key)
  } catch {
    // A browser without storage has nothing to delete.
  }
}

function read(name: string): string {
  try {
    return sessionStorage.getItem(prefix + name) ?? ''
  } catch {
    return ''
  }
}

function keep(name: string, text: string): void {
  try {
    if (text === '') sessionStorage.removeItem(prefix + name)
    else sessionStorage.setItem(prefix + name, text)
  } catch {
    // A browser without storage still allows writing.
  }
}

type Labelled<Attributes> = Omit<Attributes, 'id' | 'onChange'> & {
  id: string
  label: string
  onChange(value: string): void
}

/** Shows one line of text under its label. */
export function TextField({ id, label, onChange, ...rest }: Labelled<InputHTMLAttributes<HTMLInputElement>>) {
  return (
    <>
      <label htmlFor={id}>{label}</label>
      <input id={id} type="text" {...rest} onChange={(event) => onChange(event.target.value)} />
    </>
  )
}

/** Shows several lines of text under their label. */
export function TextArea({ id, label, onChange, ...rest }: Labelled<TextareaHTMLAttributes<HTMLTextAreaElement>>) {
  return (
    <>
      <label htmlFor={id}>{label}</label>
      <textarea id={id} {...rest} onChange={(event) => onChange(event.target.value)} />
    </>
  )
}

type TextProps = { id: string; label: string; value: string; required?: boolean; onChange(value: string): void }

/** Asks for a text that other people read. */
export function PersonText({ required = true, ...rest }: TextProps) {
  return <TextArea rows={3} required={required} minLength={3} maxLength={required ? 2000 : 1000} {...rest} />
}

/** Asks for a reason, used where a change leaves a row that others read. */
export function ReasonField(props: Omit<TextProps, 'required'>) {
  return <TextField required minLength={3} maxLength={500} {...props} />
}

type SelectProps<Word extends string> = {
  label: string
  value: Word
  /** The values with their labels. */
  options: readonly (readonly [value: Word, word: string])[]
  disabled?: boolean
  className?: string
  onChange(value: NoInfer<Word>): void
  /** Content after the list: the reason why it cannot be changed. */
  children?: ReactNode
}

/** Shows a select list beside its label. */
export function SelectField<Word extends string>(props: SelectProps<Word>) {
  const { label, value, options, disabled = false, className = 'row', onChange, children } = props
  return (
    <label className={className}>
      {label}
      <select value={value} disabled={disabled} onChange={(event) => onChange(event.target.value as Word)}>
        {options.map(([each, word]) => (
          <option key={each} value={each}>
            {word}
          </option>
        ))}
      </select>
      {children}
    </label>
  )
}

/** Makes options whose values are also their labels. */
export function toOptions<Word extends string>(words: readonly Word[]): (readonly [Word, string])[] {
  return words.map((word) => [word, word] as const)
}

type CheckProps = Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange'> & { onChange(isOn: boolean): void }

export function CheckField({ children, onChange, ...rest }: CheckProps) {
  return (
    <label className="choice">
      <input type="checkbox" {...rest} onChange={(event) => onChange(event.target.checked)} />
      {children}
    </label>
  )
}

type RadioProps<Word extends string> = {
  name: string
  options: readonly (readonly [value: Word, word: string])[]
  value: Word | null
  onChange(value: NoInfer<Word>): void
}

/** Shows radio buttons, none of which is preselected. */
export function Radios<Word extends string>({ name, options, value, onChange }: RadioProps<Word>) {
  return (
    <div className="row">
      {options.map(([each, word]) => (
        <label className="choice" key={each}>
          <input
            type="radio"
            name={name}
            required
            value={each}
            checked={value === each}
            onChange={() => onChange(each)}
          />
          {word}
        </label>
      ))}
    </div>
  )
}

/** Shows radio buttons under a question. */
export function Choice<Word extends string>({ legend, ...radios }: RadioProps<Word> & { legend: string }) {
  return (
    <fieldset className="stack tight">
      <legend>{legend}</legend>
      <Radios {...radios} />
    </fieldset>
  )
}

type FacetProps<Word extends string> = {
  legend: string
  options: readonly (readonly [value: Word, word: string])[]
  chosen: readonly string[]
  onToggle(value: NoInfer<Word>): void
}

/** Shows buttons that filter a list. The pressed ones apply. */
export function Facet<Word extends string>({ legend, options, chosen, onToggle }: FacetProps<Word>) {
  return (
    <fieldset className="facet">
      <legend className="visually-hidden">{legend}</legend>
      {options.map(([each, word]) => (
        <button type="button" key={each} aria-pressed={chosen.includes(each)} onClick={() => onToggle(each)}>
          {word}
        </button>
      ))}
    </fieldset>
  )
}

/**
 * Shows a filter as a chip with its subject and value. A press shows the choices. `value` is null
 * for a filter that is not set.
 */
export function ChipFilter({ name, value, children }: { name: string; value: string | null; children: ReactNode }) {
  const summary = (
    <>
      <span>{name}</span> <b>{value ?? 'any'}</b> <ChevronDown aria-hidden="true" />
    </>
  )
  return (
    <Dropdown className="chip-filter" summary={summary}>
      {children}
    </Dropdown>
  )
}

/**
 * Sets one value of a parameter in the address, or none. The list begins at its first page again.
 */
export function AddressFacet({
  place,
  name,
  ...rest
}: { place: PageLocation; name: string } & Pick<FacetProps<string>, 'legend' | 'options'>) {
  const chosen = place.search.get(name)
  const toggle = (word: string) => navigate(withSearch(place, { [name]: chosen === word ? null : word, cursor: null }))
  return <Facet {...rest} chosen={chosen === null ? [] : [chosen]} onToggle={toggle} />
}

const hour = 3_600_000
const spans: [string, number][] = [
  ['4 hours', 4 * hour],
  ['a day', 24 * hour],
  ['a week', 7 * 24 * hour],
]

type UntilProps = { id: string; label: string; value: string; required: boolean; onChange(value: string): void }

/** Asks for a future time in the person's time zone, with UTC beside it. */
export function UntilField({ id, label, value, required, onChange }: UntilProps) {
  const chosen = toIsoTime(value)
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
        {spans.map(([word, ms]) => (
          <button type="button" key={word} onClick={() => onChange(toLocalText(new Date(Date.now() + ms)))}>
            {word}
          </button>
        ))}
      </div>
      <span className="soft small">{chosen ? formatBothZones(chosen) : 'Times are in your time zone.'}</span>
    </div>
  )
}

/** Formats the chosen time for the API. Null for an empty or incomplete time. */
export function toIsoTime(value: string): string | null {
  const at = new Date(value)
  return value === '' || Number.isNaN(at.getTime()) ? null : at.toISOString()
}

function toLocalText(at: Date): string {
  const two = (number: number) => String(number).padStart(2, '0')
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
  return `${day}T${two(at.getHours())}:${two(at.getMinutes())}`
}

/** Milliseconds after typing until the search runs. */
const typingMs = 250

type SearchProps = { place: PageLocation; field: RefObject<HTMLInputElement | null>; label: string }

/** Shows a search field whose text is `q` in the address. */
export function SearchField({ place, field, label }: SearchProps) {
  const inAddress = place.search.get('q') ?? ''
  const [text, setText] = useState(inAddress)
  // Updates the field when the address changes, for example by going back.
  useEffect(() => setText(inAddress), [inAddress])
  // biome-ignore lint/correctness/useExhaustiveDependencies: waits for the typing alone, not for the address it leads to
  useEffect(() => {
    if (text.trim() === inAddress) return
    const timer = setTimeout(
      () => navigate(withSearch(place, { q: text.trim(), cursor: null }), { replace: true }),
      typingMs,
    )
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
