import type { ToldRehearsal } from '../../domain/told-rehearsal.ts'
import { Inert } from '../inert.tsx'

/** What was found out beforehand, line by line, and then what was not tried: neither may be taken for the other. */
export function Rehearsal({ told: { lines, untried } }: { told: ToldRehearsal }) {
  return (
    <>
      {lines.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so it must be reachable by keyboard
        <section className="exact" aria-label="What was found out beforehand" tabIndex={0}>
          <pre dir="ltr">
            <Inert text={lines.join('\n')} />
          </pre>
        </section>
      )}
      {untried.length > 0 && (
        <ul className="said wrong">
          {untried.map((sentence) => (
            <li className="wraps" key={sentence}>
              <Inert text={sentence} />
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
