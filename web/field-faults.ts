import { capitalize, formatCount } from '../domain/format.ts'
import type { ApiRefusal } from './api.ts'

type Field = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement

/**
 * Shows beside a field what is wrong with it, in the application's words, until it changes. A
 * browser would use a bubble with other words, and only for the first field. Covers every form,
 * also forms that are added later.
 */
export function sayFieldFaults(page: Document): void {
  page.addEventListener(
    'invalid',
    (event) => {
      const field = event.target as Field
      event.preventDefault()
      show(field, describeFault(field))
      // Moves the focus to the field, because a browser without its bubble does not move the focus.
      if (field.form?.querySelector('input:invalid, textarea:invalid, select:invalid') === field) field.focus()
    },
    true,
  )
  for (const kind of ['input', 'change'])
    page.addEventListener(kind, ({ target }) => {
      const line = target instanceof HTMLElement ? placeOf(target as Field).nextElementSibling : null
      if (line?.matches('.field-fault')) clear(line)
    })
  // Checks after the page was drawn again, because a button may fill a field, and another field may
  // remove it.
  for (const kind of ['input', 'change', 'click']) page.addEventListener(kind, () => setTimeout(() => clearOver(page)))
}

/**
 * Shows the server's refusals beside the fields of a form, and scrolls to the first. A field has
 * this name, or an id that ends with it. Returns the refusal with the labels of the form's fields.
 */
export function sayRefusedFields(form: HTMLFormElement, { message: whole, errors }: ApiRefusal): string {
  const faults = errors.flatMap(({ field: path, message }) => {
    const name = path?.split('.').findLast((part) => /\D/.test(part))
    if (!name) return []
    const word = CSS.escape(name)
    const field = form.querySelector<Field>(`[name="${word}"], [id="${word}"], [id$="-${word}"]`)
    return path && field?.matches('input, textarea, select') ? [{ path, field, message }] : []
  })
  for (const { field, message } of faults) show(field, toFault(message), true)
  faults[0]?.field.focus()
  return faults.reduce((said, { path, field }) => {
    const label = field.labels?.[0]?.textContent?.trim()
    return label ? said.replace(path, () => `“${label}”`) : said
  }, whole)
}

/** Makes a sentence of an error text, which the API writes after the name of a field. */
function toFault(message: string): string {
  const said = /^(?:is|has|takes|holds|names|needs|may|would)\b/.test(message) ? `it ${message}` : message
  return capitalize(/[.?!]$/.test(said) ? said : `${said}.`)
}

/** Removes the errors of fields that no longer exist or are now valid. */
function clearOver(page: Document): void {
  for (const line of page.querySelectorAll<HTMLElement>('.field-fault'))
    if (describedBy(line).every((field) => isOver(line, field))) clear(line)
}

/**
 * Whether an error is no longer true. For the browser a refused field is valid, so it stays refused
 * until it changes.
 */
function isOver(line: HTMLElement, { validity, value }: Field): boolean {
  const { refused } = line.dataset
  return refused === undefined ? validity.valid : value !== refused
}

const describedBy = ({ id }: Element) => [
  ...document.querySelectorAll<Field>(`[aria-describedby~="${CSS.escape(id)}"]`),
]

/**
 * Returns the element that shows a field's error: the label of a radio button or check box. Radio
 * buttons of one name share one element.
 */
function placeOf(field: Field): Element {
  const row = field.type === 'radio' ? field.closest('.row') : null
  return row ?? field.closest('label') ?? field
}

let lines = 0

function show(field: Field, said: string, isRefused = false): void {
  const place = placeOf(field)
  const before = place.nextElementSibling
  const line = before?.matches('.field-fault') ? (before as HTMLElement) : document.createElement('p')
  line.className = 'field-fault'
  // Uses a separate id, because two fields of one page may have the same name, or none.
  line.id ||= `field-fault-${++lines}`
  // Does not announce the server's refusal, because the message of the form already does.
  line.role = isRefused ? null : 'alert'
  delete line.dataset.refused
  if (isRefused) line.dataset.refused = field.value
  line.textContent = said
  if (line !== before) place.after(line)
  field.setAttribute('aria-invalid', 'true')
  const named = (field.getAttribute('aria-describedby') ?? '').split(' ').filter((each) => each && each !== line.id)
  field.setAttribute('aria-describedby', [...named, line.id].join(' '))
}

function clear(line: Element): void {
  line.remove()
  for (const field of describedBy(line)) {
    field.removeAttribute('aria-invalid')
    const left = (field.getAttribute('aria-describedby') ?? '').split(' ').filter((each) => each !== line.id)
    if (left.length > 0) field.setAttribute('aria-describedby', left.join(' '))
    else field.removeAttribute('aria-describedby')
  }
}

function describeFault(field: Field): string {
  const { validity, title } = field
  const { min, max, step, minLength, placeholder } = field as HTMLInputElement
  if (validity.valueMissing && field.type === 'radio') return 'Choose one of these.'
  if (validity.valueMissing && field.type === 'checkbox') return 'Tick this box.'
  if (validity.valueMissing || (validity.badInput && field.type !== 'number'))
    return missing[field.type] ?? 'Fill in this field.'
  if (validity.badInput) return 'Give a number.'
  if (validity.tooShort) return `Give at least ${formatCount(minLength, 'character')}.`
  if (validity.rangeUnderflow) return `The smallest value is ${min}.`
  if (validity.rangeOverflow) return `The largest value is ${max}.`
  if (validity.stepMismatch) return step === '' || step === '1' ? 'Give a whole number.' : `Give a multiple of ${step}.`
  if (validity.typeMismatch && field.type === 'url') return 'Give a full address, such as https://example.com/path.'
  if (validity.typeMismatch) return 'Give an e-mail address, such as name@example.com.'
  return title || `The format is wrong${placeholder ? `: write it like ${placeholder}` : ''}.`
}

const missing: Record<string, string> = {
  'datetime-local': 'Give a day and a time.',
  date: 'Give a day.',
  'select-one': 'Choose one of these.',
}
