import type { UseQueryResult } from '@tanstack/react-query'
import { memo, type ReactNode, useEffect, useRef, useState } from 'react'
import { formatNumber } from '../domain/format.ts'
import type { ListPage } from './api.ts'
import { QueryState } from './page-frame.tsx'
import { Link, type PageLocation, withSearch } from './router.tsx'

export type Column<T> = {
  /** The heading. Empty for a column of buttons or pictures, which needs none. */
  head: string
  /** True if the heading is only for screen readers, because the cells are clear without it. */
  isUnseen?: boolean
  /** `wide` (left out on a narrow screen) and `num` (aligned right) also apply to the heading. */
  className?: string
  cell(item: T): ReactNode
  /** A text that is shown while the mouse is on the cell. */
  hint?(item: T): string | undefined
}

type RowProps = { id?: string; className?: string; 'data-current'?: boolean }

type TableProps<T> = {
  /** The caption for screen readers. */
  caption: string
  /** The class of the table. `table` has rows of one line each. */
  className?: string
  columns: Column<T>[]
  toKey(item: T): string
  toRowProps?(item: T): RowProps
}

type ListProps<T> = {
  query: UseQueryResult<ListPage<T>>
  /** The name of what is loaded, such as `tokens`. */
  what: string
  empty: ReactNode
  /** The page, whose address has the cursor. Without an address the list has one page. */
  place?: PageLocation
  /** The texts of the links to the first and next page. */
  directions?: [back: string, on: string]
  /** Content above the list, shown after it was loaded. */
  above?: ReactNode
  /** Content in the frame of the list, before its first row. */
  bar?: ReactNode
  className?: string
  /** Reads again. Default: the function of the query. */
  again?: () => void
}

/** Shows a list from the API in all its states: loading, failed, empty, or one page of the list. */
export function DataList<T>({ children, ...props }: ListProps<T> & { children(items: T[]): ReactNode }) {
  const { query, what, empty, place, directions, above, bar, again, className } = props
  return (
    <>
      <QueryState query={query} what={what} {...(again && { again })} />
      {query.data && (
        <>
          {above}
          <div className={className === 'table' ? undefined : 'sheet'}>
            {bar}
            {query.data.items.length > 0 ? children(query.data.items) : empty}
          </div>
        </>
      )}
      {place && <Pager place={place} next={query.data?.nextCursor ?? null} directions={directions} />}
    </>
  )
}

/** Shows a list from the API as a table. */
export function DataTable<T>(props: ListProps<T> & TableProps<T>) {
  return <DataList {...props}>{(items) => <Table {...props} items={items} />}</DataList>
}

export function Table<T>({ items, columns, ...props }: TableProps<T> & { items: T[]; none?: string }) {
  const { caption, className, toKey, toRowProps, none } = props
  const { drawn, end } = useDrawn(items.length)
  return (
    <table className={className}>
      <caption className="visually-hidden">{caption}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <Head key={column.head} column={column} />
          ))}
        </tr>
      </thead>
      <tbody>
        {items.slice(0, drawn).map((item) => (
          <Row key={toKey(item)} item={item} columns={columns as Column<unknown>[]} {...toRowProps?.(item)} />
        ))}
        {items.length > drawn && (
          <tr ref={end}>
            <td colSpan={columns.length} className="soft">
              {formatNumber(items.length - drawn)} more, drawn as you scroll
            </td>
          </tr>
        )}
        {items.length === 0 && none && (
          <tr>
            <td colSpan={columns.length} className="soft">
              {none}
            </td>
          </tr>
        )}
      </tbody>
    </table>
  )
}

const drawnAtOnce = 200

/**
 * Draws some rows at first, and more when their end comes into view, because ten thousand at once
 * block a page for seconds.
 */
function useDrawn(count: number) {
  const [drawn, setDrawn] = useState(drawnAtOnce)
  const end = useRef<HTMLTableRowElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the end is another row once more are drawn, or others came
  useEffect(() => {
    if (!end.current) return
    const watch = new IntersectionObserver(
      (seen) => seen.some((each) => each.isIntersecting) && setDrawn((before) => before + drawnAtOnce),
      { rootMargin: '600px' },
    )
    watch.observe(end.current)
    return () => watch.disconnect()
  }, [drawn, count])
  return { drawn, end }
}

/**
 * A row that is drawn again only after a change. Moving the cursor over ten thousand rows changes
 * two.
 */
const Row = memo(function Row({ item, columns, ...rest }: RowProps & { item: unknown; columns: Column<unknown>[] }) {
  return (
    <tr {...rest}>
      {columns.map(({ head, className, cell, hint }) => (
        <td key={head} className={className} title={hint?.(item)}>
          {cell(item)}
        </td>
      ))}
    </tr>
  )
})

/**
 * Shows a bar in a table with the length of its share of the largest value. The number is beside
 * it.
 */
export function Tally({ share }: { share: number }) {
  return (
    <svg className="tally" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect width={share * 100} height="6" />
    </svg>
  )
}

const ofHeads = ['wide', 'pick', 'look', 'sev', 'what', 'now', 'owner', 'since', 'press']

function Head<T>({ column: { head, isUnseen, className = '' } }: { column: Column<T> }) {
  const kept = head ? [...ofHeads, 'num'] : ofHeads
  const classes = className.split(' ').filter((each) => kept.includes(each))
  const own = classes.join(' ') || undefined
  return head ? (
    <th scope="col" className={own}>
      {isUnseen ? <span className="visually-hidden">{head}</span> : head}
    </th>
  ) : (
    <td className={own} />
  )
}

type PagerProps = { place: PageLocation; next: string | null; directions?: [back: string, on: string] | undefined }

export function Pager({ place, next, directions: [back, on] = ['← Newest', 'Older →'] }: PagerProps) {
  return (
    <nav className="pager" aria-label="Pages of the list">
      {place.search.get('cursor') ? <Link href={withSearch(place, { cursor: null })}>{back}</Link> : <span />}
      {next && <Link href={withSearch(place, { cursor: next })}>{on}</Link>}
    </nav>
  )
}
