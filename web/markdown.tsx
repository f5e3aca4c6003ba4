import { Fragment, type ReactNode } from 'react'
import { Inert } from './inert.tsx'

/**
 * Shows a model's text in a fixed subset of Markdown: bold, italics, code, lists, and headings as
 * bold. A link is shown as text and address, and cannot be followed. HTML is shown as text. Every
 * piece passes `Inert`. The rest stays as written.
 */
export function Markdown({ text }: { text: string }) {
  return blocksOf(text).map((block, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the blocks of one text have no other identity
    <Fragment key={index}>{drawn(block)}</Fragment>
  ))
}

type Block =
  | { kind: 'code'; text: string }
  | { kind: 'text'; text: string }
  | { kind: 'list'; isNumbered: boolean; items: string[] }

const item = /^\s{0,6}(?:[-*+]|(\d{1,3})[.)])\s+(.*)$/
const heading = /^#{1,6}\s+(.{1,300}?)\s*#*$/

function blocksOf(text: string): Block[] {
  const blocks: Block[] = []
  let isCode = false
  for (const line of text.split('\n')) {
    const last = blocks.at(-1)
    const found = isCode ? null : item.exec(line)
    if (/^\s{0,3}```/.test(line)) {
      isCode = !isCode
      if (isCode) blocks.push({ kind: 'code', text: '' })
    } else if (isCode && last?.kind === 'code') last.text += `${line}\n`
    else if (found) {
      const isNumbered = found[1] !== undefined
      if (last?.kind === 'list' && last.isNumbered === isNumbered) last.items.push(found[2] ?? '')
      else blocks.push({ kind: 'list', isNumbered, items: [found[2] ?? ''] })
    } else if (last?.kind === 'text') last.text += `\n${line}`
    else if (line.trim() !== '') blocks.push({ kind: 'text', text: line })
  }
  return blocks
}

function drawn(block: Block): ReactNode {
  if (block.kind === 'code') {
    return (
      <pre dir="ltr" className="wraps lines">
        <Inert text={block.text} />
      </pre>
    )
  }
  if (block.kind === 'text') {
    return (
      <p className="wraps lines">
        <Inline
          text={block.text
            .replace(/\s+$/, '')
            .replace(/^#{1,6}\s.*$/gm, (line) => `**${heading.exec(line)?.[1] ?? line}**`)}
        />
      </p>
    )
  }
  const List = block.isNumbered ? 'ol' : 'ul'
  return (
    <List className={`written ${block.isNumbered ? 'numbered' : ''}`}>
      {block.items.map((each, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the items of one text have no other identity
        <li key={index} className="wraps">
          <Inline text={each} />
        </li>
      ))}
    </List>
  )
}

/**
 * Marks of Markdown, each with a limit, so that no untrusted text makes the search for an end long.
 */
const marks = /(`[^`\n]{1,500}`|\*\*[^*\n]{1,500}\*\*|\*[^*\s][^*\n]{0,300}\*|\[[^\]\n]{1,300}\]\([^)\s]{1,500}\))/

function Inline({ text }: { text: string }) {
  return text.split(marks).map((part, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text have no other identity
    <Fragment key={index}>{index % 2 === 0 ? <Inert text={part} /> : marked(part)}</Fragment>
  ))
}

function marked(part: string): ReactNode {
  if (part.startsWith('`')) {
    return <Inert as="code" text={part.slice(1, -1)} />
  }
  if (part.startsWith('**')) {
    return <Inert as="strong" text={part.slice(2, -2)} />
  }
  if (part.startsWith('*')) {
    return <Inert as="em" text={part.slice(1, -1)} />
  }
  const [, words = '', address = ''] = /^\[(.*)\]\((.*)\)$/.exec(part) ?? []
  return <Inert text={`${words} (${address})`} />
}
