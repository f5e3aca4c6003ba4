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
      if (target instanceof HTMLElement) clear(target)
    })
}

/** A field's place: a radio or box is a part of its label, and radios of one name say it once. */
function placeOf(field: Field): Element {
  const row = field.type === 'radio' ? field.closest('.row') : null
  return row ?? field.closest('label') ?? field
}

function show(field: Field, said: string): void {
  const place = placeOf(field)
  const before = place.nextElementSibling
  const line = before?.matches('.field-fault') ? (before as HTMLElement) : document.createElement('p')
  line.className = 'field-fault'
  line.id = `${field.id || field.name || 'field'}-fault`
  line.role = 'alert'
  line.textContent = said
  if (line !== before) place.after(line)
  field.setAttribute('aria-invalid', 'true')
  const named = (field.getAttribute('aria-describedby') ?? '').split(' ').filter((each) => each && each !== line.id)
  field.setAttribute('aria-describedby', [...named, line.id].join(' '))
}

function clear(target: HTMLElement): void {
  const line = placeOf(target as Field).nextElementSibling
  if (!line?.matches('.field-fault')) return
  line.remove()
  for (const field of document.querySelectorAll(`[aria-describedby~="${CSS.escape(line.id)}"]`)) {
    field.removeAttribute('aria-invalid')
    const left = (field.getAttribute('aria-describedby') ?? '').split(' ').filter((each) => each !== line.id)
    if (left.length > 0) field.setAttribute('aria-describedby', left.join(' '))
    else field.removeAttribute('aria-describedby')
  }
}

function describeFault(field: Field): string {
  const { validity, title } = field
  const { min, max, minLength, placeholder } = field as HTMLInputElement
  if (validity.valueMissing && field.type === 'radio') return 'Choose one of these.'
  if (validity.valueMissing && field.type === 'checkbox') return 'Tick this box.'
  if (validity.valueMissing || (validity.badInput && field.type !== 'number'))
    return missing[field.type] ?? 'Fill in this field.'
  if (validity.badInput) return 'Give a number.'
  if (validity.tooShort) return `Give at least ${formatCount(minLength, 'character')}.`
  if (validity.rangeUnderflow) return `The least is ${min}.`
  if (validity.rangeOverflow) return `The most is ${max}.`
  if (validity.stepMismatch) return 'Give a whole number.'
  if (validity.typeMismatch && field.type === 'url') return 'Give a whole address, as https://example.com/path.'
  if (validity.typeMismatch) return 'Give an e-mail address, as name@example.com.'
  return title || `Its form does not fit${placeholder ? `, as in ${placeholder}` : ''}.`
}

const missing: Record<string, string> = {
  'datetime-local': 'Give a day and a time.',
  date: 'Give a day.',
  'select-one': 'Choose one of these.',
}
