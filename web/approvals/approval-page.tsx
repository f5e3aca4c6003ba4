import { useQuery } from '@tanstack/react-query'
import type { ApprovalDetail } from '../../domain/approval.ts'
import { ask } from '../api.ts'
import { Heading } from '../heading.tsx'
import { Link } from '../router.tsx'
import { Failed, Loading } from '../states.tsx'
import { ApprovalCard } from './card.tsx'

export function ApprovalPage({ id }: { id: string }) {
  const approval = useQuery({
    queryKey: ['approval', id],
    queryFn: ({ signal }) => ask<ApprovalDetail>(`/approvals/${encodeURIComponent(id)}`, { signal }),
  })
  if (approval.isPending) return <Loading what="the approval" />
  return (
    <>
      <p className="small">
        <Link href="/approvals">← Approvals</Link>
      </p>
      {!approval.data && <Heading title="Approval" />}
      {approval.error && (
        <Failed error={approval.error} isKept={approval.data !== undefined} again={() => void approval.refetch()} />
      )}
      {approval.data && <ApprovalCard approval={approval.data} />}
    </>
  )
}
