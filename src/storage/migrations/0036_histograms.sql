-- Histograms of the rows of hours and days: each row has 16 buckets of a metric, from bucket 16 * part on. metric: 0 latency, 1 time to first token (ms), 2
-- throughput (tokens per 1000 s). Bucket n: values around 1.1^n.
CREATE TABLE analytics_histograms (
  span BIGINT NOT NULL,
  metric BIGINT NOT NULL,
  start BIGINT NOT NULL,
  series BIGINT NOT NULL,
  part BIGINT NOT NULL,
  calls_0 BIGINT NOT NULL,
  calls_1 BIGINT NOT NULL,
  calls_2 BIGINT NOT NULL,
  calls_3 BIGINT NOT NULL,
  calls_4 BIGINT NOT NULL,
  calls_5 BIGINT NOT NULL,
  calls_6 BIGINT NOT NULL,
  calls_7 BIGINT NOT NULL,
  calls_8 BIGINT NOT NULL,
  calls_9 BIGINT NOT NULL,
  calls_10 BIGINT NOT NULL,
  calls_11 BIGINT NOT NULL,
  calls_12 BIGINT NOT NULL,
  calls_13 BIGINT NOT NULL,
  calls_14 BIGINT NOT NULL,
  calls_15 BIGINT NOT NULL,
  PRIMARY KEY (span, metric, start, series, part)
);

INSERT INTO analytics_histograms
  SELECT 1, metric, start, series, bucket / 16,
    SUM(CASE WHEN bucket % 16 = 0 THEN calls ELSE 0 END),
    SUM(CASE WHEN bucket % 16 = 1 THEN calls ELSE 0 END),
    SUM(CASE WHEN bucket % 16 = 2 THEN calls ELSE 0 END),
    SUM(CASE WHEN bucket % 16 = 3 THEN calls ELSE 0 END),
    SUM(CASE WHEN bucket % 16 = 4 THEN calls ELSE 0 END),
    SUM(CASE WHEN bucket % 16 = 5 THEN calls ELSE 0 END),
    SUM(CASE WHEN bucket % 16 = 6 THEN calls ELSE 0 END),
    SUM(CASE WHEN bucket % 16 = 7 THEN calls ELSE 0 END),
    SUM(CASE WHEN bucket % 16 = 8 THEN calls ELSE 0 END),
    SUM(CASE WHEN bucket % 16 = 9 THEN calls ELSE 0 END),
    SUM(CASE WHEN bucket % 16 = 10 THEN calls ELSE 0 END),
    SUM(CASE WHEN bucket % 16 = 11 THEN calls ELSE 0 END),
    SUM(CASE WHEN bucket % 16 = 12 THEN calls ELSE 0 END),
    SUM(CASE WHEN bucket % 16 = 13 THEN calls ELSE 0 END),
    SUM(CASE WHEN bucket % 16 = 14 THEN calls ELSE 0 END),
    SUM(CASE WHEN bucket % 16 = 15 THEN calls ELSE 0 END)
  FROM analytics_buckets WHERE span = 1 GROUP BY metric, start, series, bucket / 16;

INSERT INTO analytics_histograms
  SELECT 24, metric, start - start % 24, series, part,
    SUM(calls_0), SUM(calls_1), SUM(calls_2), SUM(calls_3), SUM(calls_4), SUM(calls_5), SUM(calls_6), SUM(calls_7),
    SUM(calls_8), SUM(calls_9), SUM(calls_10), SUM(calls_11), SUM(calls_12), SUM(calls_13), SUM(calls_14), SUM(calls_15)
  FROM analytics_histograms WHERE span = 1 GROUP BY metric, start - start % 24, series, part;

-- A node of an older version keeps its sums pending without this table; newer nodes add them.
DROP TABLE analytics_buckets;
