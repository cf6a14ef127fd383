const FAILURES: Record<string, string> = {
  rate_limited: 'the provider limited the rate',
  overloaded: 'the provider was overloaded',
  unavailable: 'the provider did not answer, or with an error of its own',
  timeout: 'no answer in time',
  credential: "the provider refused the gateway's credential",
  payment: 'the account at the provider has no credit',
  not_found: 'the provider does not have the model',
  invalid_request: 'the provider refused the request',
  content_filter: 'the provider refused the content',
  invalid_response: 'the answer was not readable',
  no_tool_call: 'the answer lacks the required tool call',
  internal: 'an error of the gateway',
};

/** Words for a class of failures. */
export const failureText = (failure: string): string => FAILURES[failure] ?? failure.replaceAll('_', ' ');
