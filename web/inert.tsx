/**
 * Text that a stranger wrote, shown as what it is: characters that reorder, hide or break text are written out, so that what a
 * person approves is what they read.
 */
// C0 without tab and line break, DEL and C1; soft hyphen, marks, embeddings, overrides and isolates of direction; zero
// widths; line separators; tags; lone surrogates.
const ranges =
  '\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f' +
  '\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}\\ud800-\\udfff'
const odd = new RegExp(`([${ranges}])`, 'gu')

export function Inert({ text }: { text: string }) {
  const parts = text.split(odd)
  if (parts.length === 1) return <bdi>{text}</bdi>
  return (
    <bdi>
      {parts.map((part, index) =>
        index % 2 === 0 ? (
          part
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text have no other identity
          <span className="odd" key={index}>
            {nameOf(part)}
          </span>
        ),
      )}
    </bdi>
  )
}

/** The same for places that take a string alone: a title, a label. */
export function inertText(text: string): string {
  return text.replace(odd, nameOf)
}

function nameOf(character: string): string {
  return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`
}

/** Data exactly as it is, boundaries visible, in a box that nothing written in it can leave. */
export function Exact({ value, label }: { value: unknown; label: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so it must be reachable by keyboard
    <section className="exact" aria-label={label} tabIndex={0}>
      <pre dir="ltr">
        <Inert text={JSON.stringify(value, null, 2) ?? 'null'} />
      </pre>
    </section>
  )
}
