import { useQuery } from '@tanstack/react-query'
import type { Approval } from '../../domain/approval.ts'
import { ask, type Page } from '../api.ts'

export const pendingKey = ['approvals', 'pending']

/** What waits for a person now; asked again by the stream, and once a minute because approvals expire by themselves. */
export function usePendingApprovals() {
  const query = useQuery({
    queryKey: pendingKey,
    refetchInterval: 60_000,
    queryFn: ({ signal }) => ask<Page<Approval>>('/approvals?status=pending&limit=100', { signal }),
  })
  return { ...query, items: query.data?.items ?? [], count: query.data?.items.length ?? 0 }
}
