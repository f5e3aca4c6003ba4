import { keepPreviousData } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState } from 'react'
import type { ListedIncident } from '../../domain/incident-detail.ts'
import { ask, type ListPage, queryClient, readAgain, useAsk } from '../api.ts'
import { useLive } from '../live.tsx'

/** Milliseconds for which rows of one incident are collected, so that it is read once. */
const settleMs = 400

/**
 * Keeps a page of incidents in place: rows change with their incidents, and new incidents above are
 * counted and not inserted.
 */
export function useIncidents(search: string) {
  const key = ['incidents', search]
  const list = useAsk<ListPage<ListedIncident>>(key, `/incidents?${search}`, { placeholderData: keepPreviousData })
  const [newer, setNewer] = useState(0)
  const touched = useRef(new Set<string>())
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const onFirstPage = !new URLSearchParams(search).has('cursor')
  const asked = useRef(search)
  asked.current = search

  const settle = useCallback(async () => {
    const shown = queryClient.getQueryData<ListPage<ListedIncident>>(['incidents', search])
    const ids = [...touched.current]
    touched.current.clear()
    for (const id of ids) for (const part of ['incident', 'brief']) void readAgain([part, id])
    if (!shown) return
    const fresh = await ask<ListPage<ListedIncident>>(`/incidents?${search}`).catch(() => null)
    if (!fresh) return
    const known = new Set(shown.items.map(({ id }) => id))
    // Ignores a response that belongs to another list.
    if (asked.current !== search) return
    if (onFirstPage) setNewer(fresh.items.filter(({ id }) => !known.has(id)).length)
    const now = new Map(fresh.items.map((incident) => [incident.id, incident]))
    // An incident that no longer matches the filter stays in its row, with its new state.
    for (const id of ids.filter((each) => known.has(each) && !now.has(each))) {
      const found = await ask<ListedIncident>(`/incidents/${id}`).catch(() => null)
      if (found) now.set(id, { ...found, lastEvent: shown.items.find((each) => each.id === id)?.lastEvent ?? null })
    }
    queryClient.setQueryData<ListPage<ListedIncident>>(['incidents', search], (page) =>
      page ? { ...page, items: page.items.map((item) => now.get(item.id) ?? item) } : page,
    )
  }, [search, onFirstPage])

  useLive(({ incidentId, kind, detail, at, seq }) => {
    queryClient.setQueryData<ListPage<ListedIncident>>(key, (page) =>
      page
        ? {
            ...page,
            items: page.items.map((item) =>
              item.id === incidentId ? { ...item, lastEvent: { kind, detail, at, seq } } : item,
            ),
          }
        : page,
    )
    touched.current.add(incidentId)
    clearTimeout(timer.current)
    timer.current = setTimeout(() => void settle(), settleMs)
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: another list has its own count
  useEffect(() => {
    setNewer(0)
    return () => clearTimeout(timer.current)
  }, [search])

  const showNewer = async () => {
    setNewer(0)
    await readAgain(key)
  }
  return { list, newer, showNewer }
}
