import { Inert } from '../inert.tsx'
import { type Line, lines } from '../lines.ts'

/** What a value was and what it becomes: beside each other where they are short, else line by line. */
export function Change({ from, to }: { from: string | null; to: string | null }) {
  if (from !== null && to !== null && (from + to).includes('\n')) {
    return (
      <pre className="changes">
        {lines(from, to).map(({ sign, text }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a line is its place
          <Marked key={index} sign={sign} text={`${sign} ${text}`} />
        ))}
      </pre>
    )
  }
  return (
    <span className="changes inline">
      {from === null ? <span className="soft">not set</span> : <Marked sign="-" text={brief(from)} />}{' '}
      {to === null ? <span className="soft">not set</span> : <Marked sign="+" text={brief(to)} />}
    </span>
  )
}

function Marked({ sign, text }: Line) {
  if (sign === ' ') return <Inert text={text} />
  const Element = sign === '-' ? 'del' : 'ins'
  return (
    <Element>
      <span className="visually-hidden">{sign === '-' ? 'was ' : 'becomes '}</span>
      <Inert text={text} />
    </Element>
  )
}

function brief(value: string): string {
  return value.length > 200 ? `${value.slice(0, 199)}…` : value
}
