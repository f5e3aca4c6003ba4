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
