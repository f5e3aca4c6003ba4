import { formatCount } from '../domain/format.ts'

type Field = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement

/**
 * Says beside a field what is wrong with it, in our words and until it is changed. A browser says
 * it in a bubble in other words, and only of the first one. Covers every form, also later ones.
 */
export function sayFieldFaults(page: Document): void {
  page.addEventListener(
    'invalid',
    (event) => {
      const field = event.target as Field
      event.preventDefault()
      show(field, describeFault(field))
      // A browser that is kept from its bubble goes to no field either.
      if (field.form?.querySelector('input:invalid, textarea:invalid, select:invalid') === field) field.focus()
    },
    true,
  )
  for (const kind of ['input', 'change'])
    page.addEventListener(kind, ({ target }) => {
      const line = target instanceof HTMLElement ? placeOf(target as Field).nextElementSibling : null
      if (line?.matches('.field-fault')) clear(line)
    })
  // A button may fill a field, and another field take it away: seen once that is drawn.
  for (const kind of ['input', 'change', 'click']) page.addEventListener(kind, () => setTimeout(() => clearOver(page)))
}

/** Takes back what is said of fields that are gone, or right by now. */
function clearOver(page: Document): void {
  for (const line of page.querySelectorAll('.field-fault'))
    if (describedBy(line).every(({ validity }) => validity.valid)) clear(line)
}

const describedBy = ({ id }: Element) => [
  ...document.querySelectorAll<Field>(`[aria-describedby~="${CSS.escape(id)}"]`),
]

/** A field's place: a radio or box is a part of its label, and radios of one name say it once. */
function placeOf(field: Field): Element {
  const row = field.type === 'radio' ? field.closest('.row') : null
  return row ?? field.closest('label') ?? field
}

let lines = 0

function show(field: Field, said: string): void {
  const place = placeOf(field)
  const before = place.nextElementSibling
  const line = before?.matches('.field-fault') ? (before as HTMLElement) : document.createElement('p')
  line.className = 'field-fault'
  // Not by the field's name: two on one page may have the same, or none.
  line.id ||= `field-fault-${++lines}`
  line.role = 'alert'
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
  if (validity.valueMissing && field.type === 'checkbox') return 'This has to be ticked.'
  if (validity.valueMissing || (validity.badInput && field.type !== 'number'))
    return missing[field.type] ?? 'It is needed.'
  if (validity.badInput) return 'It is a number.'
  if (validity.tooShort) return `It needs at least ${formatCount(minLength, 'character')}.`
  if (validity.rangeUnderflow) return `It is at least ${min}.`
  if (validity.rangeOverflow) return `It is at most ${max}.`
  if (validity.stepMismatch)
    return step === '' || step === '1' ? 'It is a whole number.' : `It is a multiple of ${step}.`
  if (validity.typeMismatch && field.type === 'url')
    return 'It is an address with its beginning: https://example.com/path.'
  if (validity.typeMismatch) return 'It is an address of mail: name@example.com.'
  return title || `It does not have the form that is needed${placeholder ? `, as in ${placeholder}` : ''}.`
}

const missing: Record<string, string> = {
  'datetime-local': 'It is a day and a time.',
  date: 'It is a day.',
  'select-one': 'Choose one of these.',
}
