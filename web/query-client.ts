import { QueryCache, QueryClient } from '@tanstack/react-query'
import { ApiProblem } from './api.ts'
import { heard, unanswered } from './reach.ts'

/** The stream tells when something changed: nothing is asked again just because a window came to the front. */
export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({
    onSuccess: heard,
    onError: (error) => {
      unanswered(error)
      // The session ended while the page was open: the sign-in is shown in its place, and afterwards the same page again.
      if (error instanceof ApiProblem && error.status === 401) queryClient.setQueryData(['session'], null)
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      refetchOnWindowFocus: false,
      retry: (failures, error) =>
        failures < 2 && !(error instanceof ApiProblem && error.status > 0 && error.status < 500),
    },
  },
})
