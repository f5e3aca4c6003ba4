import type { AnchorHTMLAttributes } from 'react'
import type { ClaimBeside } from '../../domain/hypothesis.ts'
import { inertText } from '../inert.tsx'
import { Link, type PageLocation, usePlace, withSearch } from '../router.tsx'

/** The same place with a row of the log open beside it, or with none. What the log shows stays. */
export function withRow(place: PageLocation, seq: number | null): string {
  return `${withSearch(place, { row: seq === null ? null : String(seq) })}${place.hash && `#${place.hash}`}`
}

export const openRowOf = ({ search }: PageLocation): number => Number(search.get('row') ?? 0)

/** Opens a row of the log beside what one reads. */
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

/** The rows that a sentence rests on, a chip each; its title is what is quoted of the row. */
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
