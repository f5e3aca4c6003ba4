import type { IncidentEvent } from '../../domain/event.ts'
import { isUnshown, notShown, rowsOf, type StoredClaim } from '../../domain/stored-claim.ts'
import { Inert } from '../inert.tsx'

/** What an ending claims, with links to the rows it rests on and a mark where they do not show it. */
export function Claims({ event }: { event: IncidentEvent<'resolved'> }) {
  const { claims } = event.metadata
  if (claims.length === 0) return null
  return (
    <ul className="claims">
      {claims.map((claim) => (
        <li key={claim.text}>
          <Inert text={claim.text} /> <Rows claim={claim} />
          {isUnshown(claim) && (
            <strong className="tone-warning" title={'why' in claim ? claim.why : undefined}>
              {' '}
              {notShown}
            </strong>
          )}
        </li>
      ))}
    </ul>
  )
}

function Rows({ claim }: { claim: StoredClaim }) {
  return (
    <span className="soft small">
      {rowsOf(claim).map((seq) => (
        <a key={seq} href={`#e-${seq}`} title={quotesOf(claim, seq)}>
          {' '}
          #{seq}
        </a>
      ))}
    </span>
  )
}

function quotesOf(claim: StoredClaim, seq: number): string {
  if (!('quotes' in claim)) return `Row ${seq}`
  return claim.quotes
    .filter((quote) => quote.seq === seq)
    .map(({ text }) => text)
    .join(' … ')
}
