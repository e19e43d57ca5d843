package kafka

import (
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// defaultLogger prints warnings and errors to standard error, one readable
// line each.
func defaultLogger() *zap.Logger {
	enc := zap.NewProductionEncoderConfig()
	enc.EncodeTime = zapcore.ISO8601TimeEncoder
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(enc), zapcore.Lock(os.Stderr), zap.WarnLevel))
}
