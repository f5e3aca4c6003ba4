import { type ComponentProps, createContext, Fragment, type HTMLAttributes, type ReactNode, useContext } from 'react'
import { hiddenCharacter, nameOfCharacter } from '../domain/inert-text.ts'
import { Link } from './router.tsx'

/**
 * Shows untrusted text literally. Characters that reorder, hide or break text are spelled out, so
 * that a person approves what they read.
 */
const odd = new RegExp(`(${hiddenCharacter('\\u0000-\\u0008\\u000b-\\u001f')})`, 'gu')

/** Blanks that look like a space but do not separate words in a shell. */
const oddBlank = /[^\P{Zs} ]/gu

type InertProps = {
  text: string
  /** The element around the text. Default: `span` with a class or a title, and otherwise none. */
  as?: 'b' | 'code' | 'div' | 'em' | 'h2' | 'li' | 'p' | 'span' | 'strong' | 'td'
} & Pick<HTMLAttributes<HTMLElement>, 'id' | 'className' | 'title'>

export function Inert({ text, as, ...rest }: InertProps) {
  const quoted = useContext(QuotedContext)
  const parts = quoted === null ? [text] : text.split(quoted)
  const shown = (
    <bdi>
      {parts.map((part, index) =>
        // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text have no other identity
        index % 2 === 0 ? writeOut(part) : <mark key={index}>{writeOut(part)}</mark>,
      )}
    </bdi>
  )
  const Element = as ?? (Object.keys(rest).length > 0 ? 'span' : Fragment)
  return <Element {...rest}>{shown}</Element>
}

/** Shows untrusted text as a link. */
export function TextLink({ text, ...rest }: { text: string } & ComponentProps<typeof Link>) {
  return (
    <Link {...rest}>
      <Inert text={text} />
    </Link>
  )
}

/**
 * A pattern for words that are marked in every text. The first group of the pattern contains all
 * these words.
 */
export const QuotedContext = createContext<RegExp | null>(null)

function writeOut(text: string): ReactNode {
  const parts = text.split(odd)
  if (parts.length === 1) return text
  return parts.map((part, index) =>
    index % 2 === 0 ? (
      part
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text have no other identity
      <span className="odd" key={index}>
        {nameOfCharacter(part)}
      </span>
    ),
  )
}

/** Makes text safe where only a string is possible: a title, a label. */
export function inertText(text: string): string {
  return text.replace(odd, nameOfCharacter)
}

/** Shows data exactly, with visible boundaries, in a box that its text cannot leave. */
export function Exact({ value, label }: { value: unknown; label: string }) {
  return <TextBox label={label} text={(JSON.stringify(value, null, 2) ?? 'null').replace(oddBlank, nameOfCharacter)} />
}

/** Shows a text, or lines that are drawn separately, in the same box. */
export function TextBox({ label, text = '', lines }: { label: string; text?: string; lines?: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so it must be reachable by keyboard
    <section className="exact" aria-label={label} tabIndex={0}>
      <pre dir="ltr">{lines ?? <Inert text={text} />}</pre>
    </section>
  )
}
