import type { AnchorHTMLAttributes } from 'react'
import type { ClaimBeside } from '../../domain/hypothesis.ts'
import { inertText } from '../inert.tsx'
import { Link, type PageLocation, usePlace, withSearch } from '../router.tsx'

/** Returns the address with a row of the log open beside it, or none. The view of the log stays. */
export function withRow(place: PageLocation, seq: number | null): string {
  return `${withSearch(place, { row: seq === null ? null : String(seq) })}${place.hash && `#${place.hash}`}`
}

export const openRowOf = ({ search }: PageLocation): number => Number(search.get('row') ?? 0)

/** Opens a row of the log beside the text. */
export function RowLink({ seq, ...rest }: { seq: number } & AnchorHTMLAttributes<HTMLAnchorElement>) {
  const place = usePlace()
  return (
    <Link
      className="soft small"
      aria-label={`row ${seq}`}
      {...rest}
      href={withRow(place, seq)}
      aria-expanded={openRowOf(place) === seq}
    >
      {rest.children === undefined ? `#${seq}` : rest.children}
    </Link>
  )
}

type RowLinksProps = { rows: readonly number[]; most?: number; quotes?: readonly ClaimBeside[] }

/** Shows the rows behind a sentence, each as a chip whose title is the quote from the row. */
export function RowLinks({ rows, most = 4, quotes = [] }: RowLinksProps) {
  const titleOf = (seq: number) => quotes.flatMap((each) => (each.seq === seq ? inertText(each.text) : [])).join(' … ')
  return (
    <span className="rows small">
      {[...new Set(rows)].slice(0, most).map((seq) => (
        <RowLink key={seq} seq={seq} className="" title={titleOf(seq) || undefined} />
      ))}
    </span>
  )
}
