import { type AnchorHTMLAttributes, type MouseEvent, useMemo, useSyncExternalStore } from 'react'

const moved = new EventTarget()

function subscribe(listener: () => void): () => void {
  moved.addEventListener('moved', listener)
  addEventListener('popstate', listener)
  addEventListener('hashchange', listener)
  return () => {
    moved.removeEventListener('moved', listener)
    removeEventListener('popstate', listener)
    removeEventListener('hashchange', listener)
  }
}

/** Opens an address of this site without a reload of the page. */
export function navigate(to: string, options: { replace?: boolean } = {}): void {
  if (options.replace) history.replaceState(null, '', to)
  else history.pushState(null, '', to)
  moved.dispatchEvent(new Event('moved'))
}

export type PageLocation = { pathname: string; search: URLSearchParams; hash: string }

export function usePlace(): PageLocation {
  const href = useSyncExternalStore(subscribe, () => location.href)
  return useMemo(() => {
    const { pathname, searchParams, hash } = new URL(href)
    return { pathname, search: searchParams, hash: hash.slice(1) }
  }, [href])
}

/** Returns the same address with some parameters changed. Empty ones are left out. */
export function withSearch({ pathname, search }: PageLocation, change: Record<string, string | null>): string {
  const next = new URLSearchParams(search)
  for (const [name, value] of Object.entries(change)) {
    if (value) next.set(name, value)
    else next.delete(name)
  }
  const text = next.toString()
  return text ? `${pathname}?${text}` : pathname
}

/** Builds the query of a list: the parameters in the address that the API knows, and fixed ones. */
export function pickSearch({ search }: PageLocation, names: readonly string[], more: Record<string, string>): string {
  const next = new URLSearchParams(more)
  for (const name of names) {
    const value = search.get(name)
    if (value) next.set(name, value)
  }
  return next.toString()
}

/** Shows a real link, so that middle click, copying and opening in a tab work as usual. */
export function Link({ href, onClick, ...rest }: AnchorHTMLAttributes<HTMLAnchorElement> & { href: string }) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event)
    if (event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    navigate(href)
  }
  return <a href={href} onClick={follow} {...rest} />
}
