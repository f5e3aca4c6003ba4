import { type ReactNode, useState } from 'react'
import { formatCount, withSpaces } from '../../domain/format.ts'
import { Inert, inertText } from '../inert.tsx'
import { Warning } from '../marks.tsx'

/** The parts of a tool's argument schema that a field needs. */
type FieldSchema = {
  type?: string
  description?: string
  enum?: unknown[]
  items?: FieldSchema
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  pattern?: string
  allOf?: { pattern?: string }[]
  examples?: unknown[]
}
export type ArgumentsSchema = { properties?: Record<string, FieldSchema>; required?: string[] }

type Arguments = Record<string, unknown>
type FieldsProps = {
  schema: ArgumentsSchema
  args: Arguments
  /** The API's errors by field name. */
  refused: Record<string, string>
  onChange(args: Arguments): void
}

/** Shows a field for each argument of a tool, by its schema, with its error below. */
export function ArgumentFields({ schema, args, refused, onChange }: FieldsProps) {
  const fields = Object.entries(schema.properties ?? {})
  const set = (name: string, value: unknown) => {
    const { [name]: _, ...others } = args
    // Keeps the order of the schema, so that the values that are compared and shown do not move.
    const next = value === undefined ? others : { ...others, [name]: value }
    const names = [...new Set([...Object.keys(args), ...fields.map(([each]) => each)])]
    onChange(Object.fromEntries(names.filter((each) => each in next).map((each) => [each, next[each]])))
  }
  return fields.map(([name, about]) => (
    <ArgumentField
      key={name}
      name={name}
      about={about}
      isRequired={schema.required?.includes(name) ?? false}
      value={args[name]}
      refused={refused[name] ?? null}
      onChange={(value) => set(name, value)}
    />
  ))
}

/**
 * Lists errors of arguments by schema and name. Empty for valid arguments. The API judges the
 * arguments again.
 */
export function listFieldProblems({ properties = {}, required = [] }: ArgumentsSchema, args: Arguments) {
  const found = Object.entries(properties).flatMap(([name, about]) => {
    if (args[name] === undefined) return required.includes(name) ? [[name, 'Fill in this field.'] as const] : []
    const problem = findProblem(about, args[name])
    return problem === null ? [] : [[name, problem] as const]
  })
  return Object.fromEntries(found)
}

function findProblem(about: FieldSchema, value: unknown): string | null {
  const { minimum = -Infinity, maximum = Infinity, minLength = 0, maxLength = Infinity } = about
  if (typeof value === 'number') {
    if (about.type === 'integer' && !Number.isInteger(value)) return 'Give a whole number.'
    return value < minimum || value > maximum ? `Give a number from ${minimum} to ${maximum}.` : null
  }
  if (Array.isArray(value)) {
    if (value.length < (about.minItems ?? 0)) return `Give at least ${formatCount(about.minItems ?? 0, 'line')}.`
    if (value.length > (about.maxItems ?? Infinity)) return `Give at most ${about.maxItems} lines.`
    const items = about.items
    const bad = items ? value.findIndex((each) => findProblem(items, each) !== null) : -1
    return items && bad >= 0 ? `Line ${bad + 1}: ${findProblem(items, value[bad])}` : null
  }
  if (typeof value !== 'string') return null
  if (value.length < minLength) return `Give at least ${formatCount(minLength, 'character')}.`
  if (value.length > maxLength) return `Give at most ${maxLength} characters.`
  const patterns = [about.pattern, ...(about.allOf ?? []).map(({ pattern }) => pattern)]
  const [example] = about.examples ?? []
  const isFit = patterns.every((pattern) => pattern === undefined || new RegExp(pattern, 'u').test(value))
  return isFit ? null : `The format is wrong${example ? `: write it like ${example}` : ''}.`
}

type ArgumentProps = {
  name: string
  about: FieldSchema
  isRequired: boolean
  value: unknown
  refused: string | null
  onChange(value: unknown): void
}

function ArgumentField(props: ArgumentProps) {
  const { name, about, isRequired, value, refused } = props
  const id = `argument-${name}`
  const problem = value === undefined ? null : findProblem(about, value)
  const said = problem ?? (value === undefined && isRequired ? 'Fill in this field.' : refused)
  return (
    <div className="stack tight argument">
      <label htmlFor={id}>
        <span className="strong">{withSpaces(name)}</span>{' '}
        <span className="soft small">
          <Inert text={about.description ?? ''} />
          {!isRequired && ' (may be left empty)'}
        </span>
      </label>
      <Input {...props} describedBy={{ id, 'aria-describedby': `${id}-said`, 'aria-invalid': said !== null }} />
      <div id={`${id}-said`}>{said && <Warning text={said} />}</div>
    </div>
  )
}

type Described = { id: string; 'aria-describedby': string; 'aria-invalid': boolean }

/** Shows the field for a schema: a choice, a number, lines, or a text; JSON for anything deeper. */
function Input({
  about,
  value,
  isRequired,
  onChange,
  describedBy,
}: ArgumentProps & { describedBy: Described }): ReactNode {
  const words = about.type === 'boolean' ? ['yes', 'no'] : about.enum?.every(isText) ? (about.enum as string[]) : null
  const toText = (given: unknown) => (about.type === 'boolean' && given !== undefined ? (given ? 'yes' : 'no') : given)
  if (words) {
    const toValue = (word: string) => (about.type === 'boolean' ? word === 'yes' : word)
    return (
      <select
        {...describedBy}
        value={String(toText(value) ?? '')}
        onChange={({ target }) => onChange(target.value === '' ? undefined : toValue(target.value))}
      >
        {(!isRequired || value === undefined) && <option value="">not said</option>}
        {words.map((word) => (
          <option key={word}>{word}</option>
        ))}
      </select>
    )
  }
  if ((about.type === 'integer' || about.type === 'number') && (value === undefined || typeof value === 'number')) {
    const onNumber = (number: number) => onChange(Number.isNaN(number) ? undefined : number)
    const limits = { min: about.minimum, max: about.maximum, step: about.type === 'integer' ? 1 : 'any' }
    const shown = value ?? ''
    return (
      <input
        {...describedBy}
        {...limits}
        type="number"
        value={shown}
        onChange={({ target }) => onNumber(target.valueAsNumber)}
      />
    )
  }
  if (about.type === 'array' && about.items?.type === 'string' && (value === undefined || isLines(value))) {
    const lines = (value as string[] | undefined) ?? []
    const onLines = (text: string) => onChange(text === '' && !isRequired ? undefined : text.split('\n'))
    return <Area {...describedBy} text={lines.join('\n')} onText={onLines} label="one per line" />
  }
  if (about.type === 'string' && (value === undefined || isText(value))) {
    const text = (value as string | undefined) ?? ''
    const onText = (next: string) => onChange(next === '' && !isRequired ? undefined : next)
    if ((about.maxLength ?? 0) > maxLineCharacters || text.includes('\n'))
      return <Area {...describedBy} text={text} onText={onText} />
    return <input {...describedBy} type="text" value={text} onChange={({ target }) => onText(target.value)} />
  }
  return <JsonArea {...describedBy} value={value} onChange={onChange} />
}

/** Characters above which a text gets a box with several lines. */
const maxLineCharacters = 200

const isText = (value: unknown): value is string => typeof value === 'string'
/** Whether the value is a list of texts without line breaks. */
const isLines = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((each) => isText(each) && !each.includes('\n'))

type AreaProps = Described & { text: string; onText(text: string): void; label?: string }

function Area({ text, onText, label, ...rest }: AreaProps) {
  const rows = Math.min(12, Math.max(2, text.split('\n').length))
  return (
    <>
      {label && <span className="soft small">{label}</span>}
      <textarea
        {...rest}
        className="mono grows"
        rows={rows}
        spellCheck={false}
        value={text}
        onChange={({ target }) => onText(target.value)}
      />
    </>
  )
}

/** Shows deeper data as JSON. The browser does not send the form while it is invalid. */
function JsonArea({ value, onChange, ...rest }: Described & { value: unknown; onChange(value: unknown): void }) {
  const [text, setText] = useState(() => (value === undefined ? '' : JSON.stringify(value, null, 2)))
  const write = (field: HTMLTextAreaElement) => {
    setText(field.value)
    try {
      onChange(field.value.trim() === '' ? undefined : JSON.parse(field.value))
      field.setCustomValidity('')
    } catch (error) {
      field.setCustomValidity(inertText(`Not JSON yet: ${(error as Error).message}`))
    }
  }
  return <textarea {...rest} className="mono grows" rows={4} value={text} onChange={({ target }) => write(target)} />
}
